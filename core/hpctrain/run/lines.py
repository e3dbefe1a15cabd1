"""The last line of a stream of bytes, as a terminal would show it."""

from __future__ import annotations

from collections.abc import Callable

LONGEST = 4096


class LastLine:
    """Gathers bytes and reports each complete line; carriage returns end a line too, as bars do."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._partial_line = b""

    def feed(self, data: bytes) -> None:
        """Take more bytes; of several complete lines only the last is reported. b"" is the end."""
        if self._on_line is None:
            return
        *lines, partial_line = (self._partial_line + data).replace(b"\r", b"\n").split(b"\n")
        self._partial_line = partial_line[-LONGEST:]
        if not data:
            lines, self._partial_line = [self._partial_line], b""
        visible_lines = [line for line in lines if line.strip()]
        if visible_lines:
            self._on_line(visible_lines[-1][-LONGEST:].decode("utf-8", "replace").strip())
