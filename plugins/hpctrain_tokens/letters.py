"""Which characters two engines treat alike, whatever text they stand in.

Samples of documents would not show it: engines carry tables of different versions of Unicode, and
normalise or split characters differently that are younger than one of them. A character is trusted when
the normal form of texts with it is the same in every version, and when both engines split around it alike.
Splits are seen through a tokenizer with the same normaliser and the same splitter, but with merges that
join what was not split: its numbers are the boundaries.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Any

from hpctrain_tokens import cuts

NEIGHBOURS = "aA1 !\n'"
"""One of each kind that splitters tell apart."""

COMPOSED_RANGES = (
    *(range(0x3400), range(0xA000, 0xAC00), range(0xF900, 0x17000), range(0x1D000, 0x20000)),
    range(0x2F800, 0x2FA20),
)
"""Where characters stand that are made of others; the rest of Unicode is without them, or empty."""

LEADS, TRAILS = range(0xC2, 0xF5), range(0x80, 0xC0)
"""Bytes that begin and that end a character beyond ASCII, in UTF-8."""


class Probe:
    """Two engines with one splitter, asked about characters; `load` makes the other one of JSON."""

    def __init__(self, tokenizer: Mapping[str, Any], load: Callable[[str], Any], *, compared: bool) -> None:
        self._is_known_splitter, self._compared = cuts.is_known_splitter(tokenizer), compared
        self._has_bytes = _bytes(tokenizer)  # else no boundary can be seen, and nothing is trusted
        self._tokenizer, self._load = tokenizer, load

    @cached_property
    def _engines(self) -> tuple[Any, Any]:
        import tokenizers

        text = json.dumps(_probe(self._tokenizer))
        return tokenizers.Tokenizer.from_str(text), self._load(text)

    def compare(self, letters: Sequence[str]) -> list[bool]:
        """Whether both engines know each of these characters as the same."""
        return [
            self._has_bytes and settled(c) and (self._same_kind(c) or self._split_alike(c)) for c in letters
        ]

    def _same_kind(self, letter: str) -> bool:
        """Whether the splitter is one of those that were compared on every character, in these versions; or
        on this one, which is of the kind that it always was."""
        always = self._compared or unicodedata.ucd_3_2_0.category(letter) == unicodedata.category(letter)
        return self._is_known_splitter and always

    def _split_alike(self, letter: str) -> bool:
        reference, candidate = self._engines
        probe = around(letter)
        return bool(reference.encode(probe, add_special_tokens=False).ids == candidate.encode(probe).tolist())


def around(letter: str) -> str:
    """The character before and behind each of the neighbours, and beside itself."""
    return letter + "".join(n + letter for n in NEIGHBOURS) + f"{letter}aA{letter}Ab 1{letter}1\n"


@cache
def settled(letter: str) -> bool:
    """Whether no version of Unicode normalises texts of such characters in another way.

    What Unicode 3.2 knew is frozen. A younger character is nothing that older versions would touch; newer
    ones touch it where it is a mark, is made of others, or is a part of another character.
    """
    if unicodedata.ucd_3_2_0.category(letter) != "Cn":
        return True
    decomposition = unicodedata.decomposition(letter)
    plain = unicodedata.category(letter)[0] in "LNPS" and not unicodedata.combining(letter)
    return plain and (not decomposition or decomposition.startswith("<")) and letter not in _parts()


@lru_cache(maxsize=1)
def _parts() -> frozenset[str]:
    """Characters that others are made of."""
    decompositions = map(unicodedata.decomposition, map(chr, chain(*COMPOSED_RANGES)))
    return frozenset(chr(int(part, 16)) for m in decompositions if m and m[0] != "<" for part in m.split())


def _bytes(tokenizer: Mapping[str, Any]) -> bool:
    """Whether its words are bytes, as GPT-2 writes them."""
    last = tokenizer.get("pre_tokenizer") or {}
    steps = last.get("pretokenizers") or [last]
    return (tokenizer.get("model") or {}).get("type") == "BPE" and steps[-1].get("type") == "ByteLevel"


def _probe(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    merges = list(_merges())
    words = [*_alphabet().values(), *(left + right for left, right in merges)]
    model = {**tokenizer["model"], "vocab": {w: i for i, w in enumerate(words)}, "merges": merges}
    model |= {"unk_token": None, "ignore_merges": False, "dropout": None}
    return {**tokenizer, "model": model, "added_tokens": [], "post_processor": None, "truncation": None}


def _merges() -> Iterator[tuple[str, str]]:
    """Joins across every boundary of a character: with a neighbour, and with another of its kind."""
    byte = _alphabet()
    sides = [byte[ord(n)] for n in NEIGHBOURS]
    leads, trails = [byte[b] for b in LEADS], [byte[b] for b in TRAILS]
    yield from ((trail, following) for trail in trails for following in (*sides, *leads))
    yield from ((side, lead) for side in sides for lead in leads)


@lru_cache(maxsize=1)
def _alphabet() -> dict[int, str]:
    """The letter that stands for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(shifted)}
