"""gigatoken in front of the reference: the same numbers for a fraction of the CPU, or it is not used.

It is taken only in the version that was compared, only where the tokenizer's post-processor adds nothing
(it leaves that out silently), and each shard proves it on beginnings of its own documents. A shard that
disagrees is made again by the reference. Which characters it is trusted with says `letters`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hpctrain_tokens import cuts
from hpctrain_tokens.blocks import Block, Rule
from hpctrain_tokens.letters import Probe
from hpctrain_tokens.tokenizer import Tokenizer

VERSION = "0.10.0"
NAME = f"gigatoken {VERSION}"
REFERENCE = "tokenizers 0.23.3"
"""Whose splits were compared on every character; with another one each young character is asked for."""

SAMPLES, LETTERS = 8, 125
"""So many documents of a shard are compared, and so much of each."""

PROBES = ("", "a", "Hello  wörld\n\n1234 日本語 🙂", " \t x")
RENEW = 96 << 20
"""The engine remembers every word. One that has grown by so many bytes makes room for a new one."""

REASON = 100
"""Letters of what it says itself when it refuses a tokenizer."""

STATM = Path("/proc/self/statm")


class Differs(Exception):
    """A document of this shard has other numbers than the reference's."""


class Fast:
    """The fast engine, gigatoken, for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, load: Any) -> None:
        from hpctrain_tokens import vectors  # numpy comes with this engine

        text = tokenizer.path.read_text("utf-8")
        definition = json.loads(text)
        self._tokenizer, self._load, self._text, self._vectors = tokenizer, load, text, vectors
        self._encode = load(text).encode
        self._began = resident()
        compared = tokenizer.version == REFERENCE
        self._letters = vectors.Letters(Probe(definition, load, compared=compared).compare)
        self._cuts = cuts.allowed(definition)
        self.samples = 0
        self.reference_parts = 0
        """Parts of documents that the reference made."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> tuple[Fast | None, str]:
        """The engine, or None with the reason."""
        try:
            from importlib.metadata import version

            import gigatoken
        except ImportError:
            return None, "gigatoken is not installed here"
        if (installed := version("gigatoken")) != VERSION:
            return None, f"gigatoken {installed} was not compared, {VERSION} was"
        if tokenizer.special == "text":
            return None, "it cannot read special tokens as letters"
        bare = [list(ids) for ids in tokenizer.encode(PROBES, "q", bare=True)]
        if bare != [list(ids) for ids in tokenizer.encode(PROBES, "q")]:
            return None, "the tokenizer's post-processor adds tokens"
        try:
            fast = cls(tokenizer, gigatoken.gigatoken_rs.load_hf_json)
            if not fast._agrees(list(PROBES)):
                return None, "its numbers are others"
        except Exception as error:  # a tokenizer of a kind that it does not know
            reason = str(error).partition("\n")[0][:REASON]
            return None, f"it cannot read this tokenizer: {type(error).__name__}: {reason}"
        return fast, ""

    def block(self, texts: Sequence[str], rule: Rule) -> Block:
        """The documents of these texts by the rule; Differs when a sample disagrees."""
        trusted = self._letters.trusted(texts)
        if self.samples < SAMPLES:
            self._prove([text for text, is_trusted in zip(texts, trusted, strict=True) if is_trusted])
        if all(trusted) and max(map(len, texts), default=0) <= cuts.LONG:
            documents = list(map(self._encode, texts))
        else:
            documents = self._some(texts, trusted)
        self._renew()
        return self._vectors.block(documents, rule)

    def _some(self, texts: Sequence[str], trusted: Sequence[bool]) -> list[Any]:
        """The numbers of each text, where the reference has to make some."""
        documents = [self._parts(text, is_trusted) for text, is_trusted in zip(texts, trusted, strict=True)]
        untrusted = [part for parts in documents for part, is_trusted in parts if not is_trusted]
        self.reference_parts += len(untrusted)
        slow = self._tokenizer.encode(untrusted, "I", bare=True)
        return [self._document(parts, slow) for parts in documents]

    def _parts(self, text: str, is_trusted: bool) -> list[tuple[str, bool]]:
        """A text in parts, each with whether this engine is trusted with it."""
        slices = cuts.cut(text, cuts.LONG if is_trusted else cuts.SHORT, sure=self._cuts)
        parts = [text[part] for part in slices]
        if not parts:
            return [(text, False)]
        return list(
            zip(parts, [True] * len(parts) if is_trusted else self._letters.trusted(parts), strict=True)
        )

    def _document(self, parts: Sequence[tuple[str, bool]], slow: Iterator[array[int]]) -> Any:
        if len(parts) == 1 and parts[0][1]:
            return self._encode(parts[0][0])
        numbers = []
        for part, is_trusted in parts:
            numbers.append(self._encode(part) if is_trusted else self._vectors.numbers(next(slow)))
            self._renew()
        return self._vectors.joined(numbers)

    def _renew(self) -> None:
        """Forget the words, when they are many: memory does not grow with the input."""
        if peak() - self._began > RENEW and resident() - self._began > RENEW:
            del self._encode
            _trim()
            self._encode = self._load(self._text).encode
            self._began = resident()  # a long row is held, too: what is renewed cannot make that smaller

    def _prove(self, texts: Sequence[str]) -> None:
        sample = [text[:LETTERS] for text in texts[: SAMPLES - self.samples]]
        self.samples += len(sample)
        if sample and not self._agrees(sample):
            raise Differs

    def _agrees(self, texts: list[str]) -> bool:
        expected = self._tokenizer.encode(texts, "q", bare=True)
        return all(list(w) == self._encode(t).tolist() for t, w in zip(texts, expected, strict=True))


def peak() -> int:
    """Bytes of memory that this process held at most: to ask this costs nothing."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        pages = int(STATM.read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _trim() -> None:
    """Give back what was freed: glibc keeps it otherwise, between what is still held."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
