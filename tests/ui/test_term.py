"""Every question of looks has one answer, from the stream, the environment and the options."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from hpctrain.ui.term import FLOOR, PIPE, Term

from .help import UTF8, Screen


def of(environ: dict[str, str], tty: bool = True, **options: bool | None) -> Term:
    return Term.of(Screen() if tty else io.StringIO(), environ, **options)


@pytest.mark.parametrize(
    ("environ", "tty", "option", "color"),
    [
        ({}, True, None, True),
        ({}, False, None, False),
        ({"TERM": "dumb"}, True, None, False),
        ({"NO_COLOR": "1"}, True, None, False),
        ({"NO_COLOR": ""}, True, None, True),
        ({"FORCE_COLOR": "1"}, False, None, True),
        ({"CLICOLOR_FORCE": "1"}, False, None, True),
        ({"CLICOLOR_FORCE": "0"}, False, None, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, False, None, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, None, False),
        ({"NO_COLOR": "1"}, False, True, True),
        ({"FORCE_COLOR": "1"}, True, False, False),
    ],
)
def test_color(environ: dict[str, str], tty: bool, option: bool | None, color: bool) -> None:
    assert of(environ, tty, color=option).color is color


@pytest.mark.parametrize(
    ("environ", "ascii_only"),
    [
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.utf8"}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
        ({"LC_CTYPE": "POSIX", "LANG": "C.UTF-8"}, True),
        ({}, True),
        ({"LANG": "ja_JP.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "ko_KR.UTF-8"}, True),
        ({"LANG": "kok_IN.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "en_US.UTF-8", "TERM": "dumb"}, True),
        ({"LANG": "en_US.UTF-8", "HPCTRAIN_ASCII": "1"}, True),
        ({"LANG": "en_US.UTF-8", "HPCTRAIN_ASCII": "0"}, False),
    ],
)
def test_letters(environ: dict[str, str], ascii_only: bool) -> None:
    assert of(environ).ascii is ascii_only
    assert of(environ, ascii=True).ascii
    assert not of(environ, ascii=False).ascii


@pytest.mark.parametrize(
    ("columns", "width", "clips"),
    [
        ("44", 44, True),
        ("20", FLOOR, True),
        ("0", PIPE, False),
        ("", PIPE, False),
        ("-3", PIPE, False),
        ("wide", PIPE, False),
        ("9" * 5000, PIPE, False),
    ],
)
def test_width_of_a_pipe(columns: str, width: int, clips: bool) -> None:
    term = of({"COLUMNS": columns}, tty=False)
    assert (term.width, term.clips) == (width, clips)


def test_width_of_a_real_terminal() -> None:
    outer, inner = pty.openpty()
    with open(inner, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor, not a path)
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 63, 0, 0))
        term = Term.of(stream, UTF8)
        assert (term.width, term.clips, term.color, term.progress) == (63, True, True, "bar")
        assert Term.of(stream, {**UTF8, "COLUMNS": "50"}).width == 50
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        assert not Term.of(stream, UTF8).clips
    os.close(outer)


@pytest.mark.parametrize(
    ("environ", "tty", "plain", "progress"),
    [
        ({}, True, False, "bar"),
        ({}, False, False, "plain"),
        ({"ACCESSIBLE": "1"}, True, True, "plain"),
        ({"TERM": "dumb"}, True, True, "plain"),
        ({"HPCTRAIN_PROGRESS": "0"}, True, False, "none"),
        ({"HPCTRAIN_PROGRESS": "plain"}, True, False, "plain"),
        ({"HPCTRAIN_PROGRESS": "bar"}, False, False, "bar"),
        ({"HPCTRAIN_PROGRESS": "fancy"}, False, False, "plain"),
    ],
)
def test_plain_and_progress(environ: dict[str, str], tty: bool, plain: bool, progress: str) -> None:
    term = of(environ, tty)
    assert (term.plain, term.progress) == (plain, progress)


def test_a_slow_line_is_redrawn_less_often() -> None:
    assert of({}).pause == 0.25
    assert of({"SSH_CONNECTION": "10.0.0.1 2 10.0.0.2 22"}).pause == 1.0


def test_paint_uses_sixteen_colors_only() -> None:
    term = of({})
    assert term.paint("error", "FAIL") == "\x1b[1;31mFAIL\x1b[0m"
    assert term.paint("", "x") == "x"
    assert of({"NO_COLOR": "1"}).paint("ok", "ok") == "ok"


def test_letters_that_the_encoding_lacks_do_not_stop_the_program() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    Term.of(stream, UTF8).write("größe 東京 → ok")
    assert raw.getvalue() == "größe ?? ? ok\n".encode("latin-1")
