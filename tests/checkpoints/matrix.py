"""Which conversions work: what comes of a model in a format, and the tables of docs/conversion.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import ROOT, read_safetensors

TARGETS = ("hf", "neox", "nanotron", "megatron")
PAGE = ROOT / "docs/conversion.md"
EQUAL = "bit-equal"
MARKS = {"matrix": [*map(str, range(1, 30))], "sources": "abcdefghi"}
"""What stands for a reason in each table: one mark has one meaning on the page."""
LACKS = "not written for this framework:"
"""How a reason begins that is of a family and no fault of the format that it comes from."""


def bits(folder: Path) -> dict[str, bytes]:
    """Every tensor of a folder of Hugging Face."""
    return {name: array.tobytes() for name, (_, array) in read_safetensors(folder).items()}


def outcome(family: str, source: Path, target: str, place: Path, want: Mapping[str, bytes]) -> str:
    """EQUAL where the tensors come back from the format as they were, or why it is refused.

    `place`/there is what was written, `place`/back the same in the form of Hugging Face.
    """
    there, back = place / "there", place / "back"
    options = ConvertOptions(verify="roundtrip", fsync=False, neox_gqa_layout="concat")
    try:
        convert(source, target, there, options)
    except ConfigError as error:
        assert not there.exists()
        return reason(error.problems[0].message, family)
    convert(there, "hf", back, ConvertOptions(fsync=False))
    assert bits(back) == want
    return EQUAL


def reason(message: str, family: str) -> str:
    """An error without the names that are of this one model."""
    words = rf"(,? not {family}$)|\b{family}(?= models)"
    general = re.sub(words, lambda match: "" if match[1] else "such", message)
    general = re.sub(r"^such models are not written for .*", f"{LACKS} such models", general)
    general = re.sub(r"^such models \((.*)\) are not written for .*", rf"{LACKS} models with \1", general)
    return re.sub(r"^(?:model|gpt_neox)\.\S+ is", "a tensor is", general)


def written(name: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str]) -> None:
    """The table `name` of the page, with its notes below."""
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    listed = "\n".join(f"- ({mark}) {note}" for mark, note in zip(MARKS[name], notes, strict=False))
    text = table + "\n" + (f"\nRefused:\n\n{listed}\n" if notes else "")
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- from the tests: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    assert pattern.search(page)
    PAGE.write_text(pattern.sub(lambda match: match[1] + text + match[2], page), encoding="utf-8")


def read(name: str) -> tuple[dict[str, list[str]], list[str]]:
    """The rows of a table by their first cell, and its notes."""
    page = PAGE.read_text(encoding="utf-8")
    text = page.partition(f"<!-- from the tests: {name} -->\n")[2].partition("<!-- end -->")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    notes = [line.partition(") ")[2] for line in text.splitlines() if re.match(r"- \(\w+\) ", line)]
    return {row[0].strip("`"): row[1:] for row in lines[2:]}, notes


def cell(outcome: str, notes: list[str], table: str) -> str:
    """What a table says of an outcome; a new reason becomes a note."""
    if outcome == EQUAL:
        return EQUAL
    if outcome not in notes:
        notes.append(outcome)
    return f"({MARKS[table][notes.index(outcome)]})"
