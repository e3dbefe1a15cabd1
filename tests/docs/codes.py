"""Every slug of a problem that the sources can raise, read from their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import ROOT, files

ERRORS = {
    "HpctrainError",
    "ConfigError",
    "PluginError",
    "StepFailed",
    "StepRefused",
    "SubmitError",
    "NotReachable",
    "TimedOut",
    "IntegrityError",
    "JobFailed",
    "DataError",
}
FIRST = {"RowError", "Finding"}
"""Made with the code in front."""
MAKERS = {"Problem", "Fault", "Outage"}
PASSED_ON = {"core/hpctrain/errors.py", "core/hpctrain/runfile/faults.py"}
"""Where a problem takes the code of its caller, or of the fault that it shows."""


def used() -> dict[str, str]:
    """Each slug with the last place that uses it."""
    constants = {k: v for path in files(".py") for k, v in _constants(path).items()}
    return {slug: place for path in files(".py") for slug, place in in_file(path, constants)}


def in_file(path: Path, constants: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The slugs of one file; AssertionError for a code that nobody can read from the source."""
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    relays = {*_relays(module)}
    tuples = {*_tuples(module)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            for value in _codes(node, relays):
                found = {*_said(value, constants)}
                if not found and isinstance(value, ast.Name):
                    found = {*_assigned(module, value.id)} or tuples
                known = found or str(path) in PASSED_ON or _is_parameter(module, value)
                assert known, f"{path}:{node.lineno}: which code is {ast.unparse(value)}?"
                yield from ((slug, f"{path}:{node.lineno}") for slug in found)


def _codes(call: ast.Call, relays: set[str]) -> Iterator[ast.expr]:
    """The expressions that stand where a code does in this call."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    direct = name in MAKERS or name in FIRST or (name == "of" and owner in ERRORS) or name in relays
    if direct and call.args and not isinstance(call.args[0], ast.Starred) and name not in MAKERS:
        yield call.args[0]
    if direct or owner in ERRORS or name in ("limit", "_full"):
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "code")


def _relays(module: ast.Module) -> Iterator[str]:
    """Functions of the file whose first argument is a code."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.args if a.arg != "self"]
            if names[:1] == ["code"]:
                yield node.name


def _said(value: ast.expr, constants: dict[str, str]) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.Name) and value.id in constants:
        yield constants[value.id]
    elif isinstance(value, ast.IfExp):
        yield from _said(value.body, constants)
        yield from _said(value.orelse, constants)


def _assigned(module: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == name for t in node.targets):
            yield from _said(node.value, {})


def _tuples(module: ast.Module) -> Iterator[str]:
    """Codes that a generator yields as the second of (path, code, message, …)."""
    for node in ast.walk(module):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 2:
            yield from _said(node.value.elts[1], {})


def _is_parameter(module: ast.Module, value: ast.expr) -> bool:
    """Whether a caller gave it, so that it is seen there."""
    name = getattr(value, "id", None)
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    return any(name == a.arg for f in functions for a in (*f.args.args, *f.args.kwonlyargs)) or name is None


def _constants(path: Path) -> dict[str, str]:
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found
