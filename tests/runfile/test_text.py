"""Every way in which a file can be no run file is one clear error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, Problem
from hpctrain.runfile.reading.text import MAX_BYTES, parse_toml, read_toml


def only(text: str | bytes | Path, tmp_path: Path) -> Problem:
    path = text if isinstance(text, Path) else tmp_path / "run.toml"
    if isinstance(text, str):
        path.write_text(text)
    elif isinstance(text, bytes):
        path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        read_toml(path, path.name)
    (problem,) = caught.value.problems
    return problem


def test_syntax_error_has_its_place() -> None:
    text = "\n" * 13 + "[assets] model = {}\n"
    with pytest.raises(ConfigError) as caught:
        parse_toml(text, "run.toml")
    (problem,) = caught.value.problems
    assert problem.code == "toml"
    assert problem.message == "expected newline or end of document after a statement"
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (14, 10)
    assert problem.span.text == "[assets] model = {}"


@pytest.mark.parametrize(
    ("text", "code", "message", "line", "column"),
    [
        ("a = 1\na = 2\n", "duplicate-key", "a appears twice", 2, 1),
        ("[a]\nb = 1\n[a]\n", "duplicate-key", "a appears twice", 3, 2),
        ("[x]\ny = { b = 1, b = 2 }", "duplicate-key", "b appears twice", 2, 14),
        (f"a = {'9' * 23}", "number-range", "a is a whole number of 77 bits; at most 64 are allowed", 1, 5),
        (
            f"a = {'9' * 5000}",
            "number-range",
            "a whole number of 5000 digits; at most 64 bits are allowed",
            1,
            5,
        ),
        (
            f"a = 0x{'f' * 5000}",
            "number-range",
            "a is a whole number of 20000 bits; at most 64 are allowed",
            1,
            5,
        ),
        ('a = [1, "b\\nc"]', "control-character", "a[1] holds a newline", 1, 9),
        ('[env]\na = "b\\rc"', "control-character", "a holds the control character U+000D", 2, 5),
        ('[env]\na = ["b\\nc"]', "control-character", "a[0] holds a newline", 2, 6),
        ('[x.env]\na = "b\\nc"', "control-character", "a holds a newline", 2, 5),
        ('a = "\\u0000"', "control-character", "a holds the NUL character", 1, 5),
        ('a = "\\u001b[0m"', "control-character", "a holds the control character U+001B", 1, 5),
        ('"a\\nb" = 1', "control-character", '"a\\nb" holds a newline', 1, 1),
        ('[x]\na = """\nb"\n', "toml", "unterminated string", 3, 2),
        ('a = "b\n', "toml", "the line ends before its string does", 1, 7),
        (
            "a =\n",
            "toml",
            'a value is needed here, such as "text", 1, true, [...] or {...}',
            1,
            4,
        ),
    ],
)
def test_content(text: str, code: str, message: str, line: int, column: int, tmp_path: Path) -> None:
    problem = only(text, tmp_path)
    assert (problem.code, problem.message) == (code, message)
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (line, column)


def test_missing_quotes_are_the_hint(tmp_path: Path) -> None:
    assert only("[resources]\ntime = 90m\n", tmp_path).hint == 'time = "90m"'


def test_duplicate_says_where_the_first_is(tmp_path: Path) -> None:
    assert only("a = 1\n\na = 2", tmp_path).notes == ("first at line 1",)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000, "a = " + "[" * 60 + "]" * 60, "a=" + "{a=" * 5000, ".".join("a" * 3000) + "=1"],
)
def test_deep_nesting(text: str, tmp_path: Path) -> None:
    problem = only(text, tmp_path)
    assert problem.code == "too-deep"
    assert problem.message == "run.toml is nested deeper than 40 levels"


def test_utf8_mistake_names_byte_and_line(tmp_path: Path) -> None:
    problem = only(b'a = 1\nb = "\xc3\xa9\xe9"\n', tmp_path)
    assert problem.message == "run.toml is not UTF-8: byte 0xe9 in line 2"
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (2, 7)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_byte_order_mark(mark: bytes, tmp_path: Path) -> None:
    problem = only(mark + b"a = 1\n", tmp_path)
    assert problem.code == "encoding"
    assert problem.hint == "save run.toml as UTF-8 without a byte order mark"


def test_size(tmp_path: Path) -> None:
    assert only("#" * (MAX_BYTES + 1), tmp_path).code == "too-large"
    (tmp_path / "most.toml").write_text("#" * MAX_BYTES)
    assert read_toml(tmp_path / "most.toml").data == {}


def test_things_that_are_no_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plain = tmp_path / "plain"
    plain.write_text("")
    said = {
        tmp_path / "absent": ("no-file", '"absent" does not exist'),
        tmp_path: ("is-folder", f"{tmp_path.name} is a folder; a TOML file is needed"),
        loop: ("unreadable", "loop cannot be read: Too many levels of symbolic links"),
        pipe: ("no-file", "pipe is not a regular file"),
        plain / "x": ("unreadable", "x cannot be read: Not a directory"),
        tmp_path / "a\0b": ("no-file", '"a\\u0000b" is not a file name'),
    }
    for path, (code, message) in said.items():
        problem = only(path, tmp_path)
        assert (problem.code, problem.message) == (code, message)


def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("a = 1")
    path.chmod(0)
    folder = tmp_path
    while folder != Path("/tmp") and folder != folder.parent:
        folder.chmod(0o755)
        folder = folder.parent
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        problem = only(path, tmp_path)
    finally:
        if root:
            os.seteuid(0)
    assert (problem.code, problem.message) == (
        "unreadable",
        "run.toml cannot be read: Permission denied",
    )


def test_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"a = 1\r\n[b]\r\nc = 2\r\n")
    document = read_toml(path)
    assert document.data == {"a": 1, "b": {"c": 2}}
    assert document.span(("b", "c")).line == 3
