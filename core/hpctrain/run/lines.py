"""The last line of a stream of bytes, as a terminal would show it."""

from __future__ import annotations

from collections.abc import Callable

LONGEST = 4096


class LastLine:
    """Gathers bytes and reports each complete line; carriage returns end a line too, as bars do."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take more bytes; of several complete lines only the last is reported. b"" is the end."""
        if self._on_line is None:
            return
        *lines, rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        self._rest = rest[-LONGEST:]
        if not data:
            lines, self._rest = [self._rest], b""
        said = [line for line in lines if line.strip()]
        if said:
            self._on_line(said[-1][-LONGEST:].decode("utf-8", "replace").strip())
