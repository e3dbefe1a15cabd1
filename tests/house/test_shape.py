"""Sizes of files, versions of distributions, and the pages of the hooks."""

from __future__ import annotations

import inspect
import re
import statistics
import textwrap
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from hpctrain.hooks import results, specs
from hpctrain.runfile.toml import loads
from hpctrain.versions import DISTRIBUTION
from tests.house.sources import ROOT, files

MOST, MIDDLE = 400, 100
PROJECTS = sorted([ROOT / "pyproject.toml", *ROOT.glob("*/pyproject.toml")])
HOOKS = {
    n: f for n, f in vars(specs).items() if isinstance(f, FunctionType) and f.__module__ == specs.__name__
}


def lines(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_files_are_small() -> None:
    sizes = {str(path): lines(path) for path in files(".py", ".sh")}
    tests = [p.relative_to(ROOT) for top in ("tests", "bench") for p in (ROOT / top).rglob("*.py")]
    long = {path: size for path, size in (sizes | {str(p): lines(p) for p in tests}).items() if size > MOST}
    assert not long
    assert statistics.median(sizes.values()) < MIDDLE


def test_all_distributions_have_one_version_and_ask_for_it() -> None:
    projects: dict[str, Any] = {str(p): loads(p.read_text(encoding="utf-8"))["project"] for p in PROJECTS}
    assert len(projects) == 7
    assert {p["version"] for p in projects.values()} == {DISTRIBUTION}
    major, minor, _ = DISTRIBUTION.split(".")
    wanted = f">={DISTRIBUTION},<{major}.{int(minor) + 1}"
    asked = [dep for p in projects.values() for dep in _dependencies(p)]
    ours = {dep for dep in asked if re.match(r"hpctrain(-\w+)?[<>=]", dep)}
    assert ours
    assert {re.sub(r"^[\w-]+", "", dep) for dep in ours} == {wanted}


def _dependencies(project: dict[str, Any]) -> list[str]:
    extras = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(dep for deps in extras.values() for dep in deps)]


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented(name: str) -> None:
    doc = inspect.getdoc(HOOKS[name]) or ""
    first = doc.splitlines()[0]
    assert first.endswith("."), "the first line is a sentence"
    assert re.search(r"\b(PURE|ACTS)\b|observer", doc), "whether it may touch the world"
    assert re.search(r"^Since: \d+\.\d+$", doc, re.MULTILINE)
    example = textwrap.dedent(re.split(r"^Since:", doc.partition("Example::\n")[2], flags=re.MULTILINE)[0])
    assert f"def {name}(" in example
    compile(example, f"<example of {name}>", "exec")


@pytest.mark.parametrize("name", HOOKS)
def test_an_example_takes_arguments_that_exist(name: str) -> None:
    offered = set(inspect.signature(HOOKS[name]).parameters)
    taken = re.search(rf"def {name}\(([^)]*)\)", inspect.getdoc(HOOKS[name]) or "")
    assert taken is not None
    assert {word.strip() for word in taken[1].split(",") if word.strip()} <= offered


def test_every_hook_has_one_kind_of_result() -> None:
    assert set(results.MANY) | set(results.ONE) == set(HOOKS)
    assert not set(results.MANY) & set(results.ONE)
