"""Problems as people read them, with carets under the fault, and as `--json` carries them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.ui.text import cells, clip, head, pad, tail, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hpctrain.errors import Problem, Span
    from hpctrain.ui.term import Term


def by_position(problems: Iterable[Problem]) -> list[Problem]:
    """In the order of the file; those without a place last."""

    def key(problem: Problem) -> tuple[bool, str, int, int]:
        span = problem.span
        return (True, "", 0, 0) if span is None else (False, span.file, span.line, span.column)

    return sorted(problems, key=key)


def problem_lines(problems: Iterable[Problem], term: Term, closing: str = "") -> list[str]:
    """Every problem as a block, blocks apart by a blank line; `closing` follows their number."""
    ordered = by_position(problems)
    lines: list[str] = []
    for problem in ordered:
        lines += [""] if lines else []
        lines += _block(problem, term)
    if closing and ordered:
        lines += ["", f"{tally(ordered)}; {term.text(closing)}"]
    return lines


def tally(problems: Iterable[Problem]) -> str:
    """How many problems there are: `3 problems, 1 warning`."""
    stops = [problem.fatal for problem in problems]
    counts = ((sum(stops), "problem"), (len(stops) - sum(stops), "warning"))
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n)


def brief(problem: Problem, term: Term) -> list[str]:
    """For the foot of a plan, without note and hint: `! run.toml:12 time: message`."""
    span = problem.span
    place = "" if span is None else _at(span)
    key = problem.where.rpartition(".")[2]
    start = " ".join(word for word in (place, key) if word)
    text = term.text(f"{start}: {problem.message}" if start else problem.message)
    style = "error" if problem.fatal else "warn"
    first, *remaining = _fitted(f"! {text}", term, 2)
    return [term.paint(style, "!") + first[1:], *remaining]


def problem_json(problem: Problem) -> dict[str, object]:
    """The problem as plain values for `--json`."""
    span = problem.span
    return {
        "code": problem.code,
        "message": problem.message,
        "where": problem.where,
        "hint": problem.hint,
        "notes": list(problem.notes),
        "fatal": problem.fatal,
        "source": problem.source,
        "span": span and {"file": span.file, "line": span.line, "col": span.column, "end": span.end},
    }


def _block(problem: Problem, term: Term) -> list[str]:
    style, kind = ("error", "error") if problem.fatal else ("warn", "warning")
    start = f"{kind}[{problem.code}]:"
    first, *remaining = _fitted(f"{start} {term.text(problem.message)}", term, 2)
    lines = [term.paint(style, first[: len(start)]) + first[len(start) :], *remaining]
    lines += _place(problem, term)
    if problem.span and problem.span.text.strip():
        lines += _source(problem.span, style, term)
    for note in problem.notes:
        lines += _fitted(f"  = note: {term.text(note)}", term, 10)
    if problem.hint:
        # Never broken: a hint is there to be pasted.
        first, *remaining = (term.text(line) for line in problem.hint.splitlines())
        lines += [f"{term.paint('ok', 'help:')} {first}", *(f"      {line}" for line in remaining)]
    return lines


def _fitted(line: str, term: Term, indent: int) -> list[str]:
    if not term.clips or cells(line) <= term.width:
        return [line]
    first, *remaining = wrap(line[indent:], term.width - indent)
    return [line[:indent] + first, *(" " * indent + part for part in remaining)]


def _place(problem: Problem, term: Term) -> list[str]:
    span, where = problem.span, term.text(problem.where)
    if span is None:
        return [_arrow(where, term)] if where else []
    name = term.text(f"{_at(span)}:{span.column}" if span.line else span.file)
    if not where:
        return [_arrow(name, term)]
    if not term.clips or cells(f"  --> {name}  {where}") <= term.width:
        return [f"{_arrow(name, term)}  {where}"]
    return [_arrow(name, term), "      " + term.fit(where, 6)]


def _at(span: Span) -> str:
    """`run.toml:12`; what was said on the command line has no lines."""
    return f"{span.file}:{span.line}" if span.line else span.file


def _arrow(place: str, term: Term) -> str:
    return "  --> " + term.paint("name", term.fit(place, 6))


def _source(span: Span, style: str, term: Term) -> list[str]:
    """The line of the file, cut around the span where it is long, and carets below the span."""
    at = min(span.column, len(span.text) + 1) - 1
    end = at + 1 if span.end is None else max(at + 1, span.end - 1)
    before, fault, after = map(term.text, (span.text[:at], span.text[at:end], span.text[end:]))
    number = str(span.line)
    room = term.width - len(number) - 3
    fault = clip(fault, room * 2 // 3, term.mark)
    marked = max(1, cells(fault))  # a caret behind the end of a line also needs its place
    available = room - marked
    if cells(before) + cells(after) > available:
        keep = max(available // 2, available - cells(after))
        if cells(before) > keep:
            before = term.mark + tail(before, keep - cells(term.mark))
        left = available - cells(before)
        if cells(after) > left:
            after = head(after, left - cells(term.mark)) + term.mark
    carets = term.paint(style, "^" * marked)
    return [
        f"{number} | {before}{fault}{after}".rstrip(),
        f"{pad('', len(number))} | {' ' * cells(before)}{carets}",
    ]
