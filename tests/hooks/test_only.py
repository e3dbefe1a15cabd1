"""`[hooks] only`: whose plugins may take part; code of any other distribution never runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain import LiveRun, Session
from hpctrain.errors import ConfigError
from hpctrain.hooks import scan
from tests.hooks.dists import GOOD, distribution
from tests.patience import PATIENCE

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


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Somebody's hooks, which leave a file where they are imported."""
    module = f"{GOOD}open({str(tmp_path / 'RAN')!r}, 'w').close()\n"
    hooks = {"hpctrain.hooks": {"acme": "acme_hooks_only"}}
    distribution(tmp_path / "site", "Acme.Site", "1.0", hooks, {"acme_hooks_only": module})
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "acme_hooks_only", raising=False)
    scan.installed.cache_clear()
    yield tmp_path
    scan.installed.cache_clear()


def session(place: Path, only: str, **environ: str) -> Session:
    """The run with this line of `[hooks]`."""
    file = place / "run.toml"
    file.write_text(f"{RUN}[hooks]\n{only}\n")
    return Session(file, environ={"HOME": str(place), "USER": "ada", **environ})


def test_code_that_is_not_listed_never_runs(site: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        session(site, 'only = ["hpctrain-plugins"]')
    (problem,) = caught.value.problems
    assert problem.code == "plugin-not-listed"
    assert problem.message.startswith("acme (acme.site 1.0)")
    assert problem.span is not None
    assert problem.span.line == 10
    assert 'only = ["hpctrain-plugins", "acme.site"]' in problem.hint
    assert not (site / "RAN").exists()


def test_the_cluster_and_its_technologies_count_too(site: Path) -> None:
    with pytest.raises(ConfigError, match="local \\(hpctrain-plugins"):
        session(site, 'only = ["acme-site"]')
    assert not (site / "RAN").exists()


@pytest.mark.parametrize("only", ['only = ["hpctrain_plugins", "acme-site"]', "only = []", ""])
def test_what_is_listed_takes_part(site: Path, only: str) -> None:
    plan = session(site, only).plan()
    assert any("acme" in plugin for plugin in plan.plugins)
    assert (site / "RAN").exists()


def test_hooks_that_are_switched_off_need_not_be_listed(site: Path) -> None:
    session(site, 'only = ["hpctrain-plugins"]', HPCTRAIN_DISABLE_HOOKS="acme").plan()
    assert not (site / "RAN").exists()


def test_the_record_says_what_was_loaded_and_from_where(site: Path) -> None:
    run: LiveRun = session(site, "", PATH=os.environ["PATH"]).submit()
    run.wait(timeout=30 * PATIENCE)
    created = run.directory.record.read()[0]
    assert created["event"] == "created"
    assert created["python"] == sys.executable
    loaded = created["loaded"]
    assert loaded["hooks:acme"] == str(site / "site/acme_hooks_only.py")
    assert [plugin.split(" ")[0] for plugin in created["plugins"]] == list(loaded)
    assert all(Path(file).is_file() for file in loaded.values())
