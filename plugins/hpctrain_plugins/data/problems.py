"""Faults of data as problems: with the line of the file and carets below what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hpctrain.plugin import Problem, Span
from hpctrain_tokens.faults import Fault

LONGEST = 1 << 16
"""A longer line is not shown; its place is."""

PLAIN = (".jsonl", ".json", ".ndjson", ".txt")


def problems(faults: Iterable[Fault], omitted: int = 0) -> list[Problem]:
    """Faults of data files as problems; a note of the last one counts the `omitted`."""
    all_faults = list(faults)
    lines = _lines(all_faults)
    results = [_problem(fault, lines.get((fault.file, fault.line), "")) for fault in all_faults]
    if omitted and results:
        import attrs

        results[-1] = attrs.evolve(results[-1], notes=(*results[-1].notes, f"and {omitted:,} more"))
    return results


def _problem(fault: Fault, text: str) -> Problem:
    span = None
    if fault.file and fault.line:
        column, end = _place(fault, text)
        span = Span(file=fault.file, line=fault.line, column=column, end=end, text=text)
    where = fault.where if span or not fault.file else fault.file
    return Problem(code=fault.code, message=fault.message, where=where, hint=fault.hint, span=span)


def _place(fault: Fault, text: str) -> tuple[int, int | None]:
    """Where the fault is in its line: as it says, or where its letters are."""
    at = text.find(fault.letters) if fault.letters else -1
    return (fault.column, fault.end) if at < 0 else (at + 1, at + 1 + len(fault.letters))


def _lines(faults: Iterable[Fault]) -> dict[tuple[str, int], str]:
    """The lines that faults point at, read in one pass over each file."""
    line_numbers: dict[str, set[int]] = {}
    for fault in faults:
        if fault.line and fault.file.endswith(PLAIN):
            line_numbers.setdefault(fault.file, set()).add(fault.line)
    return {(name, n): text for name, ns in line_numbers.items() for n, text in _of(Path(name), ns)}


def _of(path: Path, numbers: set[int]) -> list[tuple[int, str]]:
    last, lines = max(numbers), []
    try:
        with path.open("rb") as file:
            number = 0
            begins = True
            while number < last or not begins:
                part = file.readline(LONGEST)
                if not part:
                    break
                number += begins
                whole = begins and (part.endswith(b"\n") or len(part) < LONGEST)
                if whole and number in numbers:
                    lines.append((number, part.decode("utf-8", "replace").rstrip("\r\n").lstrip("\ufeff")))
                begins = part.endswith(b"\n")
    except OSError:
        return []
    return lines
