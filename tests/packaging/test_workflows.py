"""The workflows of the forge are valid, and each command in them exists here."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.distributions import released
from release.version import clusters, version_of
from tests.packaging.places import MEMBERS, ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SYSTEM = {"cp", "echo", "make", "mkdir", "python", "sudo"}
"""Programs that a runner of the forge has."""
INSTALLED = {"build", "pip", "twine", "venv"}
"""Modules that the workflow installs, or Python brings."""
ACTION = re.compile(r"[\w-]+/[\w-]+@(release/)?v\d+")
COMMAND = re.compile(r"^(?:for .* in \$\((.*)\); do|echo .*\$\((.*)\)\".*)$")


def _loaded(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def _steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in _loaded(path)["jobs"].values():
        yield from job.get("steps", [])


def _commands(path: Path) -> Iterator[list[str]]:
    """Every command of a workflow as words; those inside `$(…)` instead of the line around them."""
    for step in _steps(path):
        for line in step.get("run", "").splitlines():
            inner = COMMAND.match(line.strip())
            text = next(filter(None, inner.groups())) if inner else line.strip()
            if text not in ("", "done"):
                for part in text.split(" && "):
                    yield shlex.split(re.sub(r"\$\{\{.*?\}\}", "X", part))


def _missing(words: list[str]) -> str:
    """What of a command is not there; empty when all is."""
    program, *arguments = words
    if program == "sudo":
        return _missing([word for word in arguments if not word.startswith("--")][1:])
    if program == "make":
        rules = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(VENV)", ".venv")
        return next((t for t in arguments if not re.search(rf"(?m)^{re.escape(t)}:", rules)), "")
    if program == "python" and arguments[0] == "-m":
        module = arguments[1]
        return "" if module in INSTALLED or importlib.util.find_spec(module) else module
    if program in SYSTEM or program.startswith((".venv/", "fresh/")):
        return next((w for w in arguments if w.startswith("tests/") and not (ROOT / w).exists()), "")
    paths = (program, *(word for word in arguments if word.startswith("tests/")))
    return next((path for path in paths if not (ROOT / path).exists()), "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_every_command_exists(path: Path) -> None:
    commands = list(_commands(path))
    assert len(commands) >= 4
    assert [words for words in commands if _missing(words)] == []


@pytest.mark.parametrize(
    "text",
    [
        "make nothing",
        "tests/setup/none.sh",
        "python -m release.nothing",
        "sudo bash .ci/none",
        "tests/setup/test.sh tests/none",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(text: str) -> None:
    assert _missing(shlex.split(text))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_is_bounded_and_may_little(path: Path) -> None:
    document = _loaded(path)
    assert document["permissions"] == {"contents": "read"}
    for name, job in document["jobs"].items():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
        else:
            assert job["timeout-minutes"] <= 180, name
        assert set(job.get("permissions", {})) <= {"contents", "id-token", "attestations"}
        assert set(job.get("needs", "").split()) <= set(document["jobs"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_actions_are_pinned_by_their_major_version(path: Path) -> None:
    used = [step["uses"] for step in _steps(path) if "uses" in step]
    assert used
    assert [name for name in used if not ACTION.fullmatch(name)] == []


def test_every_python_of_the_classifiers_is_tested() -> None:
    matrix = _loaded(ROOT / ".github/workflows/test.yml")["jobs"]["python"]["strategy"]["matrix"]["python"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)) == set(matrix) - {"3.14"}


def test_a_tag_names_what_it_releases() -> None:
    version = version_of(ROOT)
    everything = released(f"v{version}")
    assert {"hpctrain", "hpctrain_plugins"} <= set(everything) <= set(MEMBERS)
    assert {name: (ROOT / folder).resolve() for name, folder in everything.items()} == {
        name: MEMBERS[name].resolve() for name in everything
    }
    for name in clusters(ROOT):
        assert released(f"{name}-v{version_of(ROOT, name)}") == {f"hpctrain_{name}": f"hpc_{name}"}


@pytest.mark.parametrize("tag", ["v99.0.0", "lumi-v0.1.0", "frontier-v99.0.0", "", "main", "alpsv0.1.0"])
def test_a_tag_of_something_else_is_refused(tag: str) -> None:
    argv = (sys.executable, "-m", "release.distributions", tag)
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("distributions: ")


def test_the_list_is_one_that_a_matrix_reads() -> None:
    argv = (sys.executable, "-m", "release.distributions", f"v{version_of(ROOT)}")
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)[0] == "hpctrain"
    assert done.stdout.count("\n") == 1
