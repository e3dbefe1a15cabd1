"""How wide a token is stored, by the size of the vocabulary, as each trainer decides it."""

from __future__ import annotations

import sys
from array import array

SMALL = 65500
"""GPT-NeoX and Megatron store two bytes below this size, not up to 65536."""

NANOTRON_SMALL = 65536

CODES = {"B": 1, "b": 2, "h": 3, "i": 4, "q": 5, "H": 8}
"""Array type codes, and the numbers an .idx header has for them. 6 and 7 are floats, and swapped between
the two trainers; tokens never need them."""


def of(vocabulary: int, compat: str) -> str:
    """The array type code that tokens of this vocabulary are stored in."""
    if compat == "nanotron":
        return "H" if vocabulary <= NANOTRON_SMALL else "I"
    return "H" if vocabulary < SMALL else "i"


def size(code: str) -> int:
    """How many bytes one number of this type code takes."""
    return array(code).itemsize


def little(values: array[int]) -> bytes:
    """Little-endian bytes, whatever this machine is."""
    if sys.byteorder == "big":
        values = array(values.typecode, values)
        values.byteswap()
    return values.tobytes()


def read(code: str, data: bytes) -> array[int]:
    """The numbers in little-endian bytes."""
    values = array(code)
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values
