"""The product's source files, and what they import as it is written in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
MADE = {"__pycache__", "build", "dist"}
PRODUCT = ("core", "plugins", "hpc_*")
JOB = ("hpctrain_job", "hpctrain_tokens", "hpctrain_trl")
"""Packages that run in the job, not in the control plane."""


@attrs.frozen
class Import:
    """One imported name with its line, in full: `hpctrain.model.step.Step`."""

    name: str
    line: int

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


def files(*suffixes: str) -> list[Path]:
    """The product's files, relative to the root; generated folders left out."""
    found = [
        p for top in PRODUCT for folder in ROOT.glob(top) for p in folder.rglob("*") if p.suffix in suffixes
    ]
    return sorted(
        p.relative_to(ROOT) for p in found if "__pycache__" not in p.parts and "build" not in p.parts
    )


def python() -> list[Path]:
    """The product's modules."""
    return files(".py")


def control_plane() -> list[Path]:
    """The modules that run on a login node; demos and examples run in jobs."""
    return [
        p
        for p in python()
        if p.parts[1] not in JOB and "examples" not in p.parts and p.name != "make_data.py"
    ]


def tree(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


def imports(module: ast.Module) -> Iterator[Import]:
    """What a module imports: at its top, inside functions, and for type checkers alone."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import in line {node.lineno}"
            yield from (Import(f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def module_name(path: Path) -> tuple[str, ...]:
    """The dotted name of a product file, in parts; that of a package's own file ends with `__init__`."""
    return path.with_suffix("").parts[1:]
