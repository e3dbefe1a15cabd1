"""What a capture may bring into files of a twin, which root writes and bash, Lua and Slurm read.

A capture comes from somebody else. What is none of these is left out, and `twin up --from` says that the
answer came out otherwise.
"""

from __future__ import annotations

import re

MOST = 100_000
"""Names that a range may stand for."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,80}")
_PART = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9_.+@:=,~-]{1,200}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9_.,:%/()+=-]*")
_VALUE = re.compile(r"[A-Za-z0-9_.,:%/()+=@~ -]*")


def is_name(text: object) -> bool:
    """Of a node, a partition, a QoS, a host."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_module(text: str) -> bool:
    """Names with slashes between them."""
    return all(map(is_name, text.split("/")))


def is_path(text: object) -> bool:
    """From the root, and without a way back."""
    return isinstance(text, str) and text[:1] == "/" and all(map(_PART.fullmatch, text[1:].split("/")))


def is_variable(text: str) -> bool:
    """The name of one."""
    return _VARIABLE.fullmatch(text) is not None


def is_word(text: str) -> bool:
    """A value in Slurm's files: neither a space nor what Slurm or a shell takes for more."""
    return _WORD.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Of a variable of the site: what stays as it is between double quotes."""
    return _VALUE.fullmatch(text) is not None and ".." not in text.split("/")
