"""The TOML parser of this Python, for texts that may be anything."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError
    from tomllib import loads as _loads
else:
    from tomli import TOMLDecodeError  # type: ignore[import-not-found,unused-ignore]
    from tomli import loads as _loads

__all__ = ["TOMLDecodeError", "TooDeep", "loads"]

MOST_PARTS = 1000
"""Parts of one dotted key: its parser takes their number squared, 5 seconds for those of 200 KB."""
_NAME = r"""["'\w-]"""
_WORD = r""""(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+|."""


class TooDeep(TOMLDecodeError):
    """Tables in tables beyond what anybody writes, or Python takes apart."""

    def __init__(self, message: str) -> None:
        ValueError.__init__(self, message)  # tomli warns of a message without a document


def loads(text: str) -> dict[str, Any]:
    """The document; TOMLDecodeError for all that is none."""
    if any(line.count(".") > MOST_PARTS and _parts(line) > MOST_PARTS for line in text.split("\n")):
        raise TooDeep("a key has too many parts")
    try:
        return _loads(text)
    except RecursionError:
        raise TooDeep("nested too deeply") from None


def _parts(line: str) -> int:
    """Of the longest dotted key: names, bare or quoted, with one dot between two."""
    longest = parts = 0
    before = ""
    for match in re.finditer(_WORD, line):
        word = match[0]
        if word.isspace():
            continue
        if word == ".":
            parts += 1
        elif not (re.match(_NAME, word) and before == "."):
            parts = 0
        before = word
        longest = max(longest, parts)
    return longest
