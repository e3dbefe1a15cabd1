"""What an artifact's key says of the assets that it is made from."""

from __future__ import annotations

from hpctrain.plugin import Join, Loc, Word


def key_part(word: Word) -> str:
    """A word as a part of a key: a Loc's path holds the key of what lies there."""
    if isinstance(word, Loc):
        return f"{word.role}:{word.path}"
    return "".join(map(key_part, word.parts)) if isinstance(word, Join) else str(word)
