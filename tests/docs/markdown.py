"""A section of the reference as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.cli.show.sections import Section


def section_lines(section: Section, level: str) -> Iterator[str]:
    """A heading, a sentence and a table with a row for each key or method."""
    yield f"{level} {section.title[:1].upper()}{section.title[1:]}\n"
    yield f"{section.text}\n"
    kinds = any(row.kind for row in section.rows)
    yield "| name | type | meaning |" if kinds else "| name | meaning |"
    yield "|---|---|---|" if kinds else "|---|---|"
    for row in section.rows:
        default = f" Default: `{row.default}`." if row.default else ""
        need = " **Needed.**" if row.needed else ""
        kind = f" {_cell(row.kind)} |" if kinds else ""
        yield f"| `{row.name}` |{kind} {_cell(row.meaning)}{default}{need} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
