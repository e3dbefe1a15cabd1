"""Streams and a very small terminal for the tests of the ui."""

from __future__ import annotations

import io
import re

from hpctrain.ui.term import Term

UTF8 = {"LANG": "en_US.UTF-8", "TERM": "xterm"}


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def term(width: int | None = 80, stream: io.StringIO | None = None, /, **environ: str) -> Term:
    """A terminal of `width` columns without colour, or a pipe when `width` is None."""
    stream = stream or (io.StringIO() if width is None else Screen())
    columns = {} if width is None else {"COLUMNS": str(width)}
    return Term.of(stream, {**UTF8, "NO_COLOR": "1", **columns, **environ})


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def without_color(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def screen_of(sent: str, width: int = 200) -> list[str]:
    """What stands on a terminal after `sent`; knows CR, LF, ESC[K and ESC[nA and nothing else."""
    rows, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[\d*[A-Za-z]|[^\x1b]", without_color(sent)):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            if row == len(rows):
                rows.append("")
        elif token == "\x1b[K":
            assert column < width, "erasing at the right edge takes the last letter away"
            rows[row] = rows[row][:column]
        elif token.startswith("\x1b"):
            assert token[-1] == "A", token
            row -= int(token[2:-1])
            assert row >= 0
        else:
            line = rows[row].ljust(column)
            rows[row] = line[:column] + token + line[column + 1 :]
            column += 1
    return [line.rstrip() for line in rows if line]
