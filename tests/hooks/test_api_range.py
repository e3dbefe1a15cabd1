"""A range of hook APIs works; a distribution that says an older one is warned about once, by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import PluginError
from hpctrain.hooks import load, scan
from tests.hooks.dists import distribution

RUN = """\
name = "hello"
cluster = "local"
[environment]
use = ""
[train]
use = "command"
[train.command]
argv = ["true"]
"""
MODULES = ("acme_api_one", "acme_api_two", "acme_api_new")


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A later hpctrain, which supports 1 to 3, with two hooks of one distribution and one of another."""
    # A module that is written again within a second would be taken for the compiled one of before.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(load, "HOOK_API", 3)
    old = {"one": "acme_api_one", "two": "acme_api_two"}
    texts = {"acme_api_one": "HPCTRAIN_API = 1\n", "acme_api_two": "HPCTRAIN_API = 2\n"}
    distribution(tmp_path / "site", "acme-old", "1.0", {"hpctrain.hooks": old}, texts)
    new = {"acme_api_new": "HPCTRAIN_API = 3\n"}
    distribution(tmp_path / "site", "acme-new", "2.0", {"hpctrain.hooks": {"new": "acme_api_new"}}, new)
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "run.toml").write_text(RUN)
    scan.installed.cache_clear()
    yield tmp_path
    scan.installed.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


def session(place: Path) -> Session:
    return Session(place / "run.toml", environ={"HOME": str(place), "USER": "ada"})


def test_an_older_api_works_and_its_distribution_is_told_once(later: Path) -> None:
    plan = session(later).plan()
    assert {"hooks:one (acme-old 1.0)", "hooks:new (acme-new 2.0)"} <= set(plan.plugins)
    warnings = [p for p in plan.problems if p.code == "plugin-api-old" and "acme" in p.message]
    (warning,) = warnings
    assert warning.message == ("one (acme-old 1.0) was written for hook API 1, which later ones refuse")
    assert warning.notes == ("this hpctrain supports 1 to 3",)
    assert (warning.hint, warning.fatal) == ("pip install --upgrade acme-old", False)


def test_what_is_too_old_is_refused_with_the_range(later: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "OLDEST_HOOK_API", 2)
    entry = load.find("hooks", "one")
    with pytest.raises(PluginError, match=r"one \(acme-old 1.0\) speaks hook API 1; .* supports 2 to 3"):
        load.load(entry)


def test_the_warning_changes_no_digest(later: Path) -> None:
    digest = session(later).plan().digest
    for name in MODULES:
        (later / "site" / f"{name}.py").write_text("HPCTRAIN_API = 3\n")
        sys.modules.pop(name, None)
    again = session(later).plan()
    assert not [p for p in again.problems if "acme" in p.message]
    assert again.digest == digest
