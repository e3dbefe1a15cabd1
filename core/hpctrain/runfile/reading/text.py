"""Read a TOML file that may be anything: every way to be wrong is one clear problem."""

from __future__ import annotations

import codecs
import json
import re
import stat
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from hpctrain.errors import ConfigError, Problem, Span
from hpctrain.runfile.keys import Keys, dotted, named
from hpctrain.runfile.reading.toml import TooDeep, loads

if TYPE_CHECKING:
    from hpctrain.runfile.reading.positions import Place

_PROGRAM = '["python3", "program.py"]      the program in a file, named beside the run file'
"""What is meant by a command with a line break in it."""
_EXPORTED = """argv = ["bash", "-c", "export NAME=$'\\\\r'; exec python3 program.py"]"""
"""How a program gets a variable that no TOML file should hold."""
MAX_BYTES = 1 << 20
MAX_DEPTH = 40
MOST = 100
"""Nobody reads more problems than this at once, and each costs a search for its place."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_BOMS = {
    codecs.BOM_UTF8: "UTF-8 with a byte order mark",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@frozen(slots=False)  # for what is cached
class Document:
    """A TOML file as text and as data; its places are looked up when somebody asks."""

    file: str
    text: str
    data: dict[str, Any]

    @cached_property
    def places(self) -> dict[Keys, Place]:
        """Line and column of every key path of the file."""
        from hpctrain.runfile.reading.positions import scan  # a right file never needs it

        return scan(self.text)

    def span(self, path: Keys, *, key: bool = False) -> Span:
        """The place of the value at `path` (or of its key), else of the nearest table around it."""
        from hpctrain.runfile.reading.positions import span_at  # only a mistake pays for it

        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                whole = key or length < len(path)
                return span_at(self.file, self.text, *(place.key if whole else place.value))
        return Span(file=self.file, line=1)


def read_toml(path: Path, label: str = "") -> Document:
    """Read and parse a file, or raise ConfigError with all that is wrong with it as TOML."""
    label = label or str(path)
    return parse_toml(read_text(path, label, "a TOML file"), label)


def read_text(path: Path, label: str = "", needed: str = "a file") -> str:
    """The text of a small file that may be anything, or ConfigError."""
    label = label or str(path)
    return _decode(_read(path, label, needed), label)


def parse_toml(text: str, label: str) -> Document:
    """Parse a text; `label` is the file's name in problems."""
    text = text.replace("\r\n", "\n")
    try:
        data = loads(text)
    except TooDeep:
        raise _deep(label) from None
    except ValueError as error:
        from hpctrain.runfile.reading.syntax import syntax_problem  # only a mistake pays for it

        raise ConfigError(syntax_problem(error, text, label)) from None
    document = Document(label, text, data)
    problems = [
        Problem(
            code=code,
            message=message,
            where=dotted(path),
            hint=_PROGRAM
            if {"argv", "command"}.intersection(path)
            else _EXPORTED
            if _is_variable(path)
            else "",
            span=document.span(path, key=key),
        )
        for path, code, message, key in islice(odd_values(data, label), MOST)
    ]
    if problems:
        raise ConfigError(*problems)
    return document


def odd_values(data: object, label: str) -> Iterator[tuple[Keys, str, str, bool]]:
    """Values that TOML allows and no run has a use for: path, code, message, whether the key."""
    todo: list[tuple[Keys, object]] = [((), data)]
    while todo:
        path, value = todo.pop()
        if len(path) > MAX_DEPTH:
            raise _deep(label)
        if isinstance(value, dict):
            for key in value:
                if _is_odd(key):
                    name = json.dumps(key)
                    yield (*path, key), "control-character", f"{name} holds {_char(key)}", True
            todo += [((*path, key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            todo += reversed([((*path, number), inner) for number, inner in enumerate(value)])
        elif isinstance(value, str) and _is_odd(
            text := _without_lines(value) if _is_variable(path) else value
        ):
            yield path, "control-character", f"{named(path)} holds {_char(text)}", False
        elif type(value) is int and not -(1 << 63) <= value < 1 << 63:
            size = f"a whole number of {value.bit_length()} bits; at most 64 are allowed"
            yield path, "number-range", f"{named(path)} is {size}", False


def _instead(path: Keys) -> str:
    """What to write where a control character stood."""
    if {"argv", "command"}.intersection(path):
        return _PROGRAM
    return _EXPORTED if _is_variable(path) else ""


def _is_variable(path: Keys) -> bool:
    """Whether a value of `[env]` stands there, or of `[on.CLUSTER.env]`."""
    table = path[2:] if path[0] == "on" else path
    return len(table) == 2 and table[0] == "env"


def _without_lines(text: str) -> str:
    """Without what scripts deliver in a variable as it is: line breaks and tabs."""
    return text.replace("\n", "").replace("\t", "")


def _is_odd(text: str) -> bool:
    return not text.isprintable() and re.search(_CONTROL, text) is not None  # a right file compiles nothing


def _char(text: str) -> str:
    match = re.search(_CONTROL, text)
    code = ord(match.group()) if match else 0
    names = {0: "the NUL character", 9: "a tab", 10: "a newline"}
    return names.get(code, f"the control character U+{code:04X}")


def _deep(label: str) -> ConfigError:
    message = f"{label} is nested deeper than {MAX_DEPTH} levels"
    return ConfigError(Problem(code="too-deep", message=message, span=Span(file=label, line=1)))


def _refuse(code: str, label: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError(Problem(code=code, message=f"{label} {message}", where=label, hint=hint))


def _read(path: Path, label: str, needed: str) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _refuse("is-folder", label, f"is a folder; {needed} is needed")
        if not stat.S_ISREG(mode):  # a pipe without a writer would wait for ever
            raise _refuse("no-file", label, "is not a regular file")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refuse("no-file", json.dumps(label, ensure_ascii=False), "does not exist") from None
    except OSError as error:
        raise _refuse("unreadable", label, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise _refuse("no-file", json.dumps(label), "is not a file name") from None
    if len(raw) > MAX_BYTES:
        raise _refuse("too-large", label, f"is larger than {MAX_BYTES:,} bytes")
    return raw


def _decode(raw: bytes, label: str) -> str:
    for mark, name in _BOMS.items():
        if raw.startswith(mark):
            hint = f"save {label} as UTF-8 without a byte order mark"
            raise _refuse("encoding", label, f"is {name}; plain UTF-8 is needed", hint)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        message = f"{label} is not UTF-8: byte 0x{raw[error.start]:02x} in line {line}"
        text = raw.splitlines()[line - 1].decode(errors="replace")
        span = Span(file=label, line=line, column=column, end=column + 1, text=text)
        raise ConfigError(Problem(code="encoding", message=message, span=span)) from None
