"""A broken plugin gives one clear error that names it, and hurts nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.thirdparty import scratch
from tests.thirdparty.scratch import HERE, Scratch

SAYS = "lumi (hpctrain-lumi 0.3.1)"
HOOK = """
from hpctrain import hookimpl
HPCTRAIN_API = 1
@hookimpl
"""
NETWORK = f"{HOOK}def configure_network():"
WAYS = {
    "an import error": ("import nothing_like_this\n", "cannot be imported: ModuleNotFoundError"),
    "an unknown hook": (f"{HOOK}def configure_netwrok(run): ...\n", "there is no hook configure_netwrok"),
    "an old API": ("HPCTRAIN_API = 0\n", "speaks hook API 0; this hpctrain supports 1"),
    "a wrong result": (f"{NETWORK} return 'OFI'\n", "configure_network returned str, not Layer"),
    "a raising hook": (f"{NETWORK} {{}}['hsn']\n", "configure_network raised KeyError: 'hsn'"),
}


def plan(installed: Scratch, run_file: Path, on: str) -> tuple[int, str]:
    done = installed.run("hpctrain", "plan", str(run_file), "--on", on, "--account", "abc123")
    return done.returncode, done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_a_plugin_with(installed: Scratch, run_file: Path, way: str) -> None:
    text, said = WAYS[way]
    module = installed.site / "hpc_lumi" / "__init__.py"
    whole = module.read_text(encoding="utf-8")
    module.write_text(text, encoding="utf-8")
    try:
        code, error = plan(installed, run_file, "lumi")
        other = plan(installed, run_file, "frontier")
    finally:
        module.write_text(whole, encoding="utf-8")
    assert code == 3, error
    assert SAYS in error
    assert said in error
    assert "Traceback" not in error
    assert other[0] == 0, other[1]


@pytest.fixture
def twice(installed: Scratch, tmp_path: Path) -> Iterator[Scratch]:
    """A second distribution that brings the same name."""
    source = tmp_path / "other-lumi"
    (source / "other_lumi").mkdir(parents=True)
    (source / "other_lumi" / "__init__.py").write_text("HPCTRAIN_API = 1\n")
    text = (HERE / "hpctrain-lumi" / "pyproject.toml").read_text(encoding="utf-8")
    text = text.replace("hpctrain-lumi", "other-lumi").replace("hpc_lumi", "other_lumi")
    (source / "pyproject.toml").write_text(text.replace('readme = "README.md"\n', "").replace("0.3.1", "9.9"))
    installed.install(scratch.wheel(source, installed.folder / "wheels"))
    yield installed
    installed.pip("uninstall", "-y", "other-lumi")


def test_a_name_that_two_distributions_bring(twice: Scratch, run_file: Path) -> None:
    code, error = plan(twice, run_file, "lumi")
    assert code == 3, error
    assert "more than one distribution: hpctrain-lumi 0.3.1, other-lumi 9.9" in error
    assert plan(twice, run_file, "frontier")[0] == 0


def test_the_whole_plugin_plans(installed: Scratch, run_file: Path) -> None:
    assert plan(installed, run_file, "lumi") == (0, "")
