"""Plugins are checked by mypy --strict against the installed wheels, as their authors would."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks, pages
from tests.packaging.conftest import Make
from tests.packaging.environment import Environment
from tests.packaging.places import OWN

Check = Callable[[Path], subprocess.CompletedProcess[str]]

PLUGIN = """
from hpctrain.plugin import EnvVar, Launch, Layer, hookimpl

HPCTRAIN_API = 1


@hookimpl
def configure_network(launch: Launch) -> Layer:
    return Layer(env=(EnvVar(name="NCCL_DEBUG", value="WARN", why="our logs are full"),))
"""
PREAMBLE = """
from __future__ import annotations
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
import attrs
from hpctrain.plugin import *
"""
"""The names that an example of one hook is registered with, as `example` in tests/docs has them."""


@pytest.fixture(scope="module")
def environment(make: Make) -> Environment:
    return make(OWN, "hpctrain[clusters,testing]", "mypy")


@pytest.fixture
def check(environment: Environment, tmp_path: Path) -> Check:
    """Run `mypy --strict` in a folder, where no configuration of ours is in reach."""

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        cache = f"--cache-dir={environment.folder.with_name('mypy-cache')}"
        return environment.run("python", "-m", "mypy", "--strict", cache, ".", cwd=folder)

    return run


def test_a_plugin_is_checked_against_the_wheels(check: Check, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes_of_a_plugin_are_named(check: Check, tmp_path: Path) -> None:
    wrong = PLUGIN.replace("value=", "valeu=").replace("-> Layer:", "-> Layer:\n    print(launch.node)")
    (tmp_path / "plugin.py").write_text(wrong)
    done = check(tmp_path)
    assert done.returncode == 1
    assert 'Unexpected keyword argument "valeu" for "EnvVar"; did you mean "value"?' in done.stdout
    assert '"Launch" has no attribute "node"; maybe "nodes"?' in done.stdout
    assert "Found 2 errors" in done.stdout


def test_a_hook_keeps_its_type(check: Check, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(f"{PLUGIN}\n\nreveal_type(configure_network)\n")
    assert "def (launch: hpctrain.model.step.Launch) -> hpctrain.model.layer.Layer" in check(tmp_path).stdout


def _modules(page: Path) -> Iterator[tuple[str, str]]:
    """The files that a page's Python makes: those it names, an example of a hook, the rest as one script."""
    script = ""
    for block in blocks(page):
        if block.language != "python":
            continue
        if name := block.said("file"):
            yield name, block.text
        elif block.said("hook") is not None:
            yield f"hook_{block.line}.py", _whole(block)
        else:
            script += block.text
    if script:
        yield "script.py", script


def _copies(page: Path) -> Iterator[str]:
    """The lines with which a page makes a package of one of ours, which its files then import."""
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "console" else ():
            if line.startswith(("$ cp -r ", "$ rm -r ", "$ sed -i ")):
                yield line.removeprefix("$ ")


def _whole(block: Block) -> str:
    return block.text if "import hookimpl" in block.text else PREAMBLE + block.text


TYPED = {page: modules for page in pages() if (modules := dict(_modules(page)))}


@pytest.mark.parametrize("page", TYPED, ids=str)
def test_the_python_of_a_page_is_typed(
    check: Check, environment: Environment, tmp_path: Path, page: Path
) -> None:
    for line in _copies(page):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment.env, check=True, timeout=60)
    for name, text in TYPED[page].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_about_plugins_is_among_them() -> None:
    assert {page.name for page in TYPED} >= {
        *("hooks.md", "library.md", "site-hooks.md", "writing-a-cluster.md", "writing-a-scheduler.md"),
        *("writing-a-trainer.md", "writing-an-environment.md"),
    }
