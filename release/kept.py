"""Whether sites still say what our facts rest on: kept sentences (kept.toml) are looked for in newer copies.

    python3 -m release.kept eth-cscs/cscs-docs=../cscs-docs …

A copy is a folder with the repository's files, however it came here. Exit code 7: a sentence has changed.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from release.version import ROOT

KEPT = ROOT / "release/kept.toml"
CHANGED = 7
"""The exit code: something is not what its record says."""
ALIKE = 0.3
"""So alike a line must be to be shown as what stands there now."""


@dataclass(frozen=True)
class Sentence:
    """One quotation, and the facts that rest on it."""

    cluster: str
    source: str
    repository: str
    page: str
    facts: tuple[str, ...]
    text: str

    def change(self, copy: Path) -> str:
        """How the page differs; empty: it still says so."""
        path = copy / self.page
        if not path.is_file():
            return f"the page is gone: {self.page}"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if plain(self.text) in plain(" ".join(lines)):
            return ""
        nearest = difflib.get_close_matches(plain(self.text), [*map(plain, lines)], n=1, cutoff=ALIKE)
        return f"now: {nearest[0] if nearest else 'nothing like it'}"


def plain(text: str) -> str:
    """Its words: how a table is laid out, or that a word is set in bold, is no change of what is said."""
    return re.sub(r"\s+", " ", re.sub(r"<[^<>]*>|[*_`|]", " ", text)).strip()


def sentences(path: Path = KEPT) -> list[Sentence]:
    """All that are kept."""
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["sentence"]
    return [Sentence(**{**row, "facts": tuple(row["facts"])}) for row in rows]


def changes(kept: Sequence[Sentence], copies: Mapping[str, Path]) -> Iterator[tuple[Sentence, str]]:
    """Each sentence that a given copy no longer has."""
    for sentence in kept:
        copy = copies.get(sentence.repository)
        if copy is not None and (change := sentence.change(copy)):
            yield sentence, change


def main(argv: Sequence[str] | None = None) -> int:
    """Say what has changed, with the facts that rest on it, and what no copy was given of."""
    words = sys.argv[1:] if argv is None else argv
    kept = sentences()
    known = {sentence.repository for sentence in kept}
    copies = {name: Path(folder or "/no folder") for name, _, folder in (w.partition("=") for w in words)}
    wrong = [name for name, folder in copies.items() if name not in known or not folder.is_dir()]
    if wrong or not copies:
        print(
            f"usage: python3 -m release.kept REPOSITORY=FOLDER …, of {', '.join(sorted(known))}",
            file=sys.stderr,
        )
        for name in wrong:
            print(f"  not a repository of kept.toml with a folder: {name}={copies[name]}", file=sys.stderr)
        return 2
    changed = list(changes(kept, copies))
    for sentence, change in changed:
        print(f"{sentence.cluster}, {sentence.source}: {sentence.page}")
        print(f"  kept: {plain(sentence.text)}\n  {change}\n  facts: {', '.join(sentence.facts)}")
    count = sum(sentence.repository in copies for sentence in kept)
    unread = sorted(known - copies.keys())
    print(
        f"{count - len(changed)} of {count} sentences stand"
        + (f"; not read: {', '.join(unread)}" if unread else "")
    )
    return CHANGED if changed else 0


if __name__ == "__main__":
    sys.exit(main())
