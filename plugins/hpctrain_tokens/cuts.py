"""Long texts, cut where every splitter of a known kind would cut them: an engine needs 30 times its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONG = 1 << 19
"""Letters of a part, at most."""

SHORT = 1 << 10
"""The same where one engine is not trusted with some of them: the other one needs 40 times as long."""

_CUT = re.compile(r"(?= \S)|(?<=[A-Za-z])(?=\n)")
_DIGITS = r"\p{N}{1,3}", r"\p{N}"
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Of Llama 3 and Qwen 2. As in GPT-2's, the last space before something begins a new match, whatever stands
before it; a word ends with its last letter, and the line's end behind it does not look back."""

PATTERNS = tuple(_SPLIT.replace("DIGITS", digits) for digits in _DIGITS)


def allowed(tokenizer: Mapping[str, Any]) -> bool:
    """Whether the numbers of a text are those of its parts, when it is cut behind a word."""
    normal = tokenizer.get("normalizer") or {"type": "NFC"}
    added = tokenizer.get("added_tokens") or []
    return normal.get("type") == "NFC" and not any(map(_reaches, added)) and is_known_splitter(tokenizer)


def _reaches(token: Mapping[str, Any]) -> bool:
    """Whether an added token takes white space, or looks at it."""
    blank = any(letter.isspace() for letter in token["content"])
    return blank or any(token.get(key) for key in ("lstrip", "rstrip", "single_word"))


def is_known_splitter(tokenizer: Mapping[str, Any]) -> bool:
    """Whether it splits text as GPT-2, Llama 3 or Qwen 2 do."""
    before = tokenizer.get("pre_tokenizer") or {}
    steps = before.get("pretokenizers") or [before]
    level = steps[-1]
    if level.get("type") != "ByteLevel" or level.get("add_prefix_space"):
        return False
    if len(steps) == 1:
        return bool(level.get("use_regex", True))
    return len(steps) == 2 and not level.get("use_regex", True) and _listed(steps[0])


def _listed(step: Mapping[str, Any]) -> bool:
    plain = step.get("behavior") == "Isolated" and not step.get("invert")
    return step.get("type") == "Split" and plain and (step.get("pattern") or {}).get("Regex") in PATTERNS


def cut(text: str, most: int, *, sure: bool) -> list[slice]:
    """Parts of about so many letters and never more than LONG, one where the text is short; [] when it
    cannot be cut for `sure`."""
    parts, at = [], 0
    while sure and len(text) - at > most:
        match = _CUT.search(text, at + most // 2, at + LONG)
        if match is None:
            break
        parts.append(slice(at, match.end()))
        at = match.end()
    whole = len(text) - at <= (LONG if sure else most)
    return [*parts, slice(at, None)] if whole else []
