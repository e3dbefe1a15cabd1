"""A broken plugin gives one clear error that names it, and hurts nobody else."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.dists import distribution
from tests.patience import wait_for
from tests.thirdparty import scratch
from tests.thirdparty.scratch import HERE, Scratch, rewrite

LUMI = "lumi (hpctrain-lumi 0.3.1)"
HOOK = "from hpctrain.plugin import *\nHPCTRAIN_API = 1\n@hookimpl\n"
NETWORK = f"{HOOK}def configure_network():"
STEPS = (
    "from hpctrain.plugin import *\nHPCTRAIN_API = 1\n"
    "def step(name, *after): return Step(name=name, commands=(), after=tuple(map(After, after)))\n"
    "@hookimpl\ndef build_env():"
)
WRAPPER = HOOK.replace("@hookimpl", "@hookimpl(wrapper=True)")
WAYS = {
    "an import error": ("import nothing_like_this\n", "cannot be imported: ModuleNotFoundError"),
    "a syntax error": ("def (\n", "cannot be imported: SyntaxError"),
    "an import that exits": ("raise SystemExit(0)\n", "cannot be imported: SystemExit: 0"),
    "an import that raises what nobody catches": (
        *("raise type('Stop', (BaseException,), {})('now')\n", "cannot be imported: Stop: now"),
    ),
    "an old API": ("HPCTRAIN_API = 0\n", "speaks hook API 0; this hpctrain supports 1"),
    "an API that is no number": ("HPCTRAIN_API = True\n", "speaks hook API True; this hpctrain supports 1"),
    "an unknown hook": (f"{HOOK}def configure_netwrok(run): ...\n", "there is no hook configure_netwrok"),
    "an unknown argument": (f"{HOOK}def launch(rum): ...\n", "launch(rum) Argument(s) {'rum'}"),
    "a wrong result": (f"{NETWORK} return 'OFI'\n", "configure_network returned str, not Layer"),
    "a wrong one among several": (
        *(f"{HOOK}def check_run(): return ['slow']\n", "check_run returned str among its answers"),
    ),
    "a number where words go": (
        f"{NETWORK} return Layer(env=(EnvVar(name='NCCL_NET', value=3, why='w'),))\n",
        'configure_network: Layer.env[0].value is a number; a word is needed: "3"',
    ),
    "a raising hook": (f"{NETWORK} {{}}['hsn']\n", "configure_network raised KeyError: 'hsn'"),
    "a hook that exits": (f"{NETWORK} raise SystemExit(0)\n", "configure_network raised SystemExit: 0"),
    "a hook that raises what nobody catches": (
        *(f"{NETWORK} raise BaseException('now')\n", "configure_network raised BaseException: now"),
    ),
    "a hook that calls itself": (f"{NETWORK} return configure_network()\n", "raised RecursionError"),
    "a wrapper that wraps nothing": (f"{WRAPPER}def launch(): return None\n", "launch raised TypeError"),
    "a wrapper that asks twice": (
        f"{WRAPPER}def launch():\n yield\n yield\n",
        "launch yielded more than once",
    ),
    "steps that wait for each other": (
        f"{STEPS} return (step('a', 'c'), step('b', 'a'), step('c', 'b'))\n",
        "step a waits for itself: a waits for c waits for b waits for a",
    ),
    "a step that waits for itself": (f"{STEPS} return (step('a', 'a'),)\n", "step a waits for itself\n"),
    "a step that waits for none": (
        *(f"{STEPS} return (step('a', 'z'),)\n", "step a waits for z, and the run has no such step"),
    ),
    "a step that waits for a later one": (
        f"{STEPS} return (step('a', 'train'),)\n",
        "step a waits for itself: a waits for train waits for a",
    ),
    "two steps of one name": (f"{STEPS} return (step('a'), step('a'))\n", "two steps are called a"),
}


def plan(installed: Scratch, run_file: Path, on: str) -> tuple[int, str]:
    done = installed.run("hpctrain", "plan", str(run_file), "--on", on, "--account", "abc123")
    return done.returncode, done.stderr


@contextlib.contextmanager
def module(installed: Scratch, text: str) -> Iterator[Path]:
    """LUMI's module with another text."""
    path = installed.site / "hpc_lumi" / "__init__.py"
    whole = path.read_text(encoding="utf-8")
    rewrite(path, text)
    try:
        yield path
    finally:
        rewrite(path, whole)


@pytest.mark.parametrize("way", WAYS)
def test_a_plugin_with(installed: Scratch, run_file: Path, way: str) -> None:
    text, said = WAYS[way]
    with module(installed, text):
        code, error = plan(installed, run_file, "lumi")
        other = plan(installed, run_file, "frontier")
    assert code == 3, error
    assert LUMI in error
    assert said in error
    assert "Traceback" not in error
    assert other == (0, other[1])
    assert LUMI not in other[1]


def test_an_import_that_prints_is_quoted_and_no_answer(installed: Scratch, run_file: Path) -> None:
    with module(installed, "print('hello')\nHPCTRAIN_API = 1\n"):
        argv = ("hpctrain", "plan", str(run_file), "--json", "--account", "abc123")
        done = installed.run(*argv)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")
    assert done.stderr == f"hpctrain: {LUMI} printed 'hello' when it was imported\n"


def test_an_import_of_ten_seconds_is_named_and_nobody_elses(installed: Scratch, run_file: Path) -> None:
    mark = run_file.with_name("imported")
    text = f"import time\nopen({str(mark)!r}, 'w').close()\ntime.sleep(10)\nHPCTRAIN_API = 1\n"
    with module(installed, text):
        other = plan(installed, run_file, "frontier")
        hurt = mark.exists()
        code, error = plan(installed, run_file, "lumi")
        assert mark.exists()
    assert (code, other[0]) == (0, 0), error
    assert re.search(rf"hpctrain: {re.escape(LUMI)} took 1\d s to be imported", error)
    assert not hurt


def test_an_import_that_never_ends_is_named_when_it_is_interrupted(
    installed: Scratch, run_file: Path
) -> None:
    text = "import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(600)\n"
    with module(installed, text):
        program = subprocess.Popen(
            [installed.folder / "bin/hpctrain", "plan", run_file, "--on", "lumi"],
            cwd=run_file.parent,
            env={"PATH": "/usr/bin:/bin", "HOME": str(run_file.parent)},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for("the import", (run_file.parent / "began").exists)
        os.kill(program.pid, signal.SIGINT)
        _, error = program.communicate(timeout=60)
    assert program.returncode == 130, error
    assert f"hpctrain: {LUMI} was interrupted while it was imported\n" in error
    assert "Traceback" not in error


def test_a_package_of_an_extra_that_is_missing_comes_with_its_cure(
    installed: Scratch, run_file: Path
) -> None:
    metadata = next(installed.site.glob("hpctrain_lumi-*.dist-info")) / "METADATA"
    whole = metadata.read_text()
    fast = "Provides-Extra: fast\nRequires-Dist: lumi-topology; extra == 'fast'\n"
    try:
        metadata.write_text(whole.replace("\n\n", f"\n{fast}\n", 1))
        with module(installed, "import lumi_topology\n"):
            code, error = plan(installed, run_file, "lumi")
    finally:
        metadata.write_text(whole)
    assert code == 2, error  # nothing is broken: something is to be installed
    assert LUMI in error
    assert "hpctrain-lumi[fast]" in error


def test_a_command_that_cannot_be_imported_is_missed_by_nobody_else(
    installed: Scratch, run_file: Path
) -> None:
    info = installed.site / "acme_tool-1.5.dist-info"
    groups = {"hpctrain.commands": {"weather": "acme_weather"}}
    distribution(installed.site, "acme-tool", "1.5", groups, {"acme_weather": "1 / 0\n"})
    try:
        done = installed.run("hpctrain", "weather")
        there = installed.run("hpctrain", "--help")
        planned = plan(installed, run_file, "lumi")
    finally:
        for path in (*info.iterdir(), installed.site / "acme_weather.py"):
            path.unlink()
        info.rmdir()
    assert done.returncode == 3, done.stderr
    assert "weather (acme-tool 1.5) cannot be imported: ZeroDivisionError" in done.stderr
    assert (there.returncode, planned[0]) == (0, 0)


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
