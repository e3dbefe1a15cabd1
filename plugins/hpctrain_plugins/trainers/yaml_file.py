"""A trainer's YAML as the trainer will read it, with the place of every key and what YAML 1.1 misreads.

The trainers read with PyYAML, which keeps the last of two equal keys, takes `1e-5` for text, `no` for
False and `12:30:00` for 45000, all in silence. Here the same reader is used and each of these is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

from attrs import frozen

from hpctrain.plugin import ConfigError, Problem, Span

Path = tuple["str | int", ...]

MOST_NODES = 50_000
"""Aliases can stand for more values than any memory holds; no configuration has that many."""

_TAG = "tag:yaml.org,2002:"
_EXPONENT = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+\Z")
_OCTAL = re.compile(r"[-+]?0[0-7_]*[1-7][0-7_]*\Z")


@frozen
class Trap:
    """A plain word that YAML 1.1 reads as something else than it looks like."""

    kind: Literal["number", "truth", "time", "octal", "date"]
    word: str


@frozen
class Yaml:
    """One file: its values, where each key and value stands, and its traps by path."""

    file: str
    data: dict[str, Any]
    keys: dict[Path, Span]
    values: dict[Path, Span]
    traps: dict[Path, Trap]
    problems: tuple[Problem, ...]
    """Equal keys, and keys that are no text."""

    def span(self, path: Path) -> Span | None:
        """The place of the value at `path`, else of the nearest key around it."""
        if path in self.values:
            return self.values[path]
        return next((self.keys[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.keys), None)


@lru_cache(maxsize=16)
def read(text: str, file: str, reader: str) -> Yaml:
    """Parse one file that the trainer `reader` reads; ConfigError when it is no mapping in YAML."""
    import yaml  # costs more than a plan without YAML may

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        walk = _Walk(file, text, reader)
        walk.visit(node, (), ())
        data = loader.construct_document(node) if node is not None else None
    except yaml.YAMLError as error:
        raise ConfigError(_syntax(error, text, file)) from None
    except (RecursionError, ValueError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"cannot be read: {error}"
        raise ConfigError.of("yaml", f"{file} {reason}", span=Span(file=file, line=1)) from None
    if not isinstance(data, dict):
        raise ConfigError.of("yaml", f"{file} holds no keys", span=Span(file=file, line=1))
    return Yaml(file, data, walk.keys, walk.values, walk.traps, tuple(walk.problems))


def dotted(path: Path) -> str:
    """`data_stages[0].data.dataset`, as people name a place in a file."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def number(word: str) -> str:
    """A number with an exponent as YAML 1.1 understands it: `1e5` is written `1.0e+5`."""
    mantissa, _, exponent = word.lower().partition("e")
    point = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{point}e{exponent if exponent[0] in '+-' else f'+{exponent}'}"


class _Walk:
    """Notes the place of everything below a node."""

    def __init__(self, file: str, text: str, reader: str) -> None:
        self.file, self.lines, self.reader = file, text.splitlines(), reader
        self.keys: dict[Path, Span] = {}
        self.values: dict[Path, Span] = {}
        self.traps: dict[Path, Trap] = {}
        self.problems: list[Problem] = []
        self._left = MOST_NODES

    def visit(self, node: Any, path: Path, above: tuple[int, ...]) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"its aliases expand to more than {MOST_NODES:,} values")
        if id(node) in above:
            raise ValueError("an alias is inside the value it names")
        if node is None:
            return
        if node.id == "scalar":
            self.values[path] = self._span(node)
            if trap := _trap(node):
                self.traps[path] = trap
        for key, inner in _children(node):
            self.visit(inner, (*path, key), (*above, id(node)))
        if node.id == "mapping":
            self._pairs(node, path)

    def _pairs(self, node: Any, path: Path) -> None:
        pairs_by_key: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
        for key, value in node.value:
            if key.id != "scalar" or key.tag == f"{_TAG}merge":
                continue
            at: Path = (*path, key.value)
            self.keys[at] = self._span(key)
            pairs_by_key.setdefault((key.tag, key.value), []).append((key, value))
            if key.tag not in (f"{_TAG}str", f"{_TAG}int"):
                self.problems.append(self._no_text(key, path))
        self.problems += [self._twice(pairs, path) for pairs in pairs_by_key.values() if len(pairs) > 1]

    def _twice(self, pairs: list[tuple[Any, Any]], path: Path) -> Problem:
        count = "twice, the second" if len(pairs) == 2 else f"{len(pairs)} times, the last"
        winner = count.split(", ")[1]
        return Problem(
            code="yaml-duplicate",
            message=f"{pairs[0][0].value} appears {count} wins",
            where=dotted(path),
            span=self._span(pairs[-1][0]),
            notes=tuple(
                f"first at line {_line(key)}: {_excerpt(value)}            ({self.reader} trains on {winner})"
                if number == 0
                else f"again at line {_line(key)}: {_excerpt(value)}"
                for number, (key, value) in enumerate(pairs[:-1])
            ),
        )

    def _no_text(self, key: Any, path: Path) -> Problem:
        kind = key.tag.removeprefix(_TAG)
        return Problem(
            code="yaml-trap",
            message=f"the key {key.value} is not text: YAML 1.1 reads a {kind}",
            where=dotted(path),
            hint=f'"{key.value}":',
            span=self._span(key),
        )

    def _span(self, node: Any) -> Span:
        start, end = node.start_mark, node.end_mark
        is_one_line = start.line == end.line
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        column, stop = start.column + 1, end.column + 1 if is_one_line else len(line) + 1
        return Span(file=self.file, line=start.line + 1, column=column, end=max(stop, column + 1), text=line)


def _children(node: Any) -> Iterator[tuple[str | int, Any]]:
    if node.id == "sequence":
        yield from enumerate(node.value)
    elif node.id == "mapping":
        yield from ((str(key.value), value) for key, value in node.value)


def _trap(node: Any) -> Trap | None:
    """What a plain scalar is misread as; a quoted one is what it says."""
    word, kind = node.value, node.tag.removeprefix(_TAG)
    if node.style is not None:
        return None
    if kind == "str" and _EXPONENT.match(word):
        return Trap("number", word)
    if kind == "bool" and word.lower() not in ("true", "false"):
        return Trap("truth", word)
    if kind in ("int", "float") and ":" in word:
        return Trap("time", word)
    if kind == "int" and _OCTAL.match(word):
        return Trap("octal", word)
    return Trap("date", word) if kind == "timestamp" else None


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _excerpt(node: Any) -> str:
    if node.id != "scalar":
        return {"mapping": "{…}", "sequence": "[…]"}[node.id]
    return str(node.value) or "null"


def _syntax(error: Any, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    message = getattr(error, "problem", None) or str(error).partition("\n")[0]
    lines = text.splitlines()
    number = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
    line = lines[number] if number < len(lines) else ""
    span = Span(file=file, line=number + 1, column=mark.column + 1 if mark else 1, text=line)
    context = getattr(error, "context", None)
    return Problem(code="yaml", message=message, span=span, notes=(context,) if context else ())
