"""Prove that a program can start: everything that it imports at its start is there.

`python -m hpctrain_job.closure PROGRAM.py [NAME ...]`, in the program's own folder, reads its imports and
those of its own modules, imports each package that they name, and `NAME` beside them; all that is missing is
said at once, with the line that asks for it. Then it imports the program itself, as a module. It ends with 1
when anything is wrong.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path


def closure(root: Path, program: str) -> dict[str, str]:
    """Packages that `program` below `root` cannot start without, each with the line that imports it.

    What stands in a function, under a condition or where a missing package is caught is left to chance.
    """
    found: dict[str, str] = {}
    visited: set[Path] = set()
    waiting = [(root / program, "")]
    while waiting:
        file, package = waiting.pop()
        if file in visited:
            continue
        visited.add(file)
        for node in _imports(ast.parse(file.read_bytes(), str(file)).body):
            for name in _names(node, package):
                top = name.partition(".")[0]
                if _is_own(root, top):
                    waiting += _modules(root, name)
                elif top and top not in sys.stdlib_module_names:
                    found.setdefault(top, f"{file.relative_to(root)}:{node.lineno}")
    return found


def complaints(names: Mapping[str, str]) -> Iterator[str]:
    """What of these packages cannot be imported, and why."""
    for name, place in sorted(names.items()):
        reason = _refused(name)
        if reason:
            yield f"{name}, which {place} imports: {reason}"


def _refused(name: str) -> str:
    """Why a module cannot be imported, or nothing."""
    try:
        import_module(name)
    except BaseException as error:  # a broken binary may even raise SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"
    return ""


def _imports(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that certainly run when a module is imported, and whose failure nobody catches."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.With, ast.ClassDef)):
            yield from _imports(node.body)
        elif isinstance(node, ast.Try):
            yield from _imports([*([] if node.handlers else node.body), *node.finalbody])


def _names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """The modules that an import may load, by their full names; of `from a import b` both a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        base = ".".join((*parts[: len(parts) - node.level + 1], *filter(None, (node.module,))))
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_own(root: Path, top: str) -> bool:
    return (root / top).is_dir() or (root / f"{top}.py").is_file()


def _modules(root: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The files of a module and of all packages above it, each with the package that it is of."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:end])
        if (path / "__init__.py").is_file():
            yield path / "__init__.py", ".".join(parts[:end])
        elif path.with_suffix(".py").is_file():
            yield path.with_suffix(".py"), ".".join(parts[: end - 1])


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    program, *named = sys.argv[1:] if argv is None else argv
    root = Path.cwd()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    names = {**dict.fromkeys(named, "the run"), **closure(root, program)}
    problems = list(complaints(names)) or list(complaints({Path(program).stem: "hpctrain"}))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not problems:
        print(f"{program} imports {', '.join(sorted(names))}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
