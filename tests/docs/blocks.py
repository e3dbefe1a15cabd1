"""The fenced blocks of a page, and what the words behind their language say about them.

    ```console           each `$ command` runs here; what follows must be what it prints
    ```console shown     it needs a network, a cluster or a person: what needs none is typed, the rest parsed
    ```python            runs, in one namespace with the others of the page
    ```python hook       defines hooks, registered as a plugin's
    ```toml run=alps     a run file, planned there; `part=alps`: keys over a small one
    ```toml facts        a cluster.toml; `facts=alps`: rows over that cluster's
    ```toml settings     a settings file
    ```json, yaml        a file for the commands below it, `file=NAME`
    ```toml plugin       a pyproject.toml, whose entry points are installed for the rest of the page

`file=NAME` also writes a block into the page's folder. In expected output `…` stands for any text, and a
line of nothing else for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.house.sources import ROOT

_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PLAIN = {"text", "bash", ""}
"""Pictures and listings: nothing of ours reads them."""


@attrs.frozen
class Block:
    """One fenced block; `words` are those behind its language."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def said(self, key: str) -> str | None:
        """`part=alps` -> alps, `part` -> ""; None when it is not there."""
        for word in self.words:
            name, _, value = word.partition("=")
            if name == key:
                return value
        return None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page whose blocks are tested, relative to the root."""
    tops = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "plugins" / "README.md"]
    found = [*tops, *sorted(ROOT.glob("hpc_*/README.md")), *sorted((ROOT / "docs").glob("*.md"))]
    return [p.relative_to(ROOT) for p in found]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page in order, their indentation taken off."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        indent, language, words, body = match.groups()
        body = re.sub(f"^{indent}", "", body, flags=re.MULTILINE)
        yield Block(page, text.count("\n", 0, match.start()) + 1, language, tuple(words.split()), body)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each `$ command` of a console block with the output that is expected after it."""
    command, said = "", ""
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, said
            command, said = line[2:].strip(), ""
        elif command.endswith("\\"):
            command = f"{command[:-1]}{line.strip()}"
        else:
            said += line
    if command:
        yield command, said


def matches(expected: str, found: str) -> bool:
    """Whether the output is the expected one, `…` standing for anything."""
    lines = [line.rstrip() for line in expected.strip().splitlines()]
    pattern = ""
    for line in lines:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += re.escape(line).replace("…", "[^\n]*") + r"[ ]*\n"
    return re.fullmatch(pattern, found.strip() + "\n" if found.strip() else "") is not None
