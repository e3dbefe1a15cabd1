"""A scheduler's words stay with the scheduler: plugins and core speak of ranks, nodes and jobs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain.runfile.reading.text import read_toml
from hpctrain.testing.plans import SCHEDULER_WORDS
from tests.house.sources import ROOT, files, tree

AT_HOME = "plugins/hpctrain_plugins/schedulers"
MAY = {
    "core/hpctrain/testing/plans.py": "the kit looks for these words",
    "core/hpctrain/testing/twice.py": "the kit plans as from inside of somebody's job",
}
EXPLAINS = ("ask", "verify", "source", "note", "why", "facts", "title")
"""Tables and keys of cluster.toml that the scheduler, the site or people read."""


def code() -> list[Path]:
    return [p for p in files(".py", ".sh") if not str(p).startswith(AT_HOME)]


def words(path: Path) -> list[str]:
    """The scheduler's words in a file's strings and commands; comments and docstrings explain."""
    texts = _strings(tree(path)) if path.suffix == ".py" else _lines(path)
    return [match.group() for text in texts for match in SCHEDULER_WORDS.finditer(text)]


def _strings(module: ast.Module) -> Iterator[str]:
    docs = {id(node.body[0].value) for node in ast.walk(module) if _documented(node)}  # type: ignore[attr-defined]
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def _documented(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None


def _lines(path: Path) -> Iterator[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return (line for line in text.splitlines() if not line.lstrip().startswith("#"))


def test_code_outside_the_schedulers_knows_no_scheduler() -> None:
    found = {str(path): said for path in code() if (said := words(path))}
    assert {path: said for path, said in found.items() if path not in MAY} == {}
    assert set(MAY) <= set(found), "these say no such word any more: take them from the list"


def test_facts_and_run_files_keep_them_in_ask() -> None:
    texts = [(path, at, text) for path in files(".toml") for at, text in _values(_data(path), "")]
    assert texts
    assert not [f"{path}{at}: {text}" for path, at, text in texts if SCHEDULER_WORDS.search(text)]


def _data(path: Path) -> dict[str, Any]:
    return read_toml(ROOT / path).data


def _values(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in EXPLAINS:
                yield from _values(inner, f"{at}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _values(inner, f"{at}[{number}]")


def test_the_words_are_seen() -> None:
    module = ast.parse('"""sbatch"""\nx = f"{a} srun"\ndef f():\n    "squeue"\n    return "SLURM_JOB_ID"\n')
    found = [m.group() for text in _strings(module) for m in SCHEDULER_WORDS.finditer(text)]
    assert sorted(found) == ["SLURM_JOB_ID", "srun"]
