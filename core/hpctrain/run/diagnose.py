"""Why a step failed: the rules that plugins know, looked for in what the step printed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hpctrain.errors import HpctrainError
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.model.frozen import frozen
from hpctrain.model.job import Rule
from hpctrain.run.directory import RunDirectory

TAIL = 4 << 20
"""Bytes read of the end of each log: what ended a step stands there."""
ORDER = ("certain", "likely")
MOST = 3
"""Causes that are told; with more nobody knows where to begin."""
BEFORE = 15
_ERROR = re.compile(rb"^.*(?:\w*Error\b|\w*Exception\b|error(?:\[|:)|FATAL|fatal:|Killed|Aborted).*$", re.M)


@frozen(kw_only=True)
class Line:
    """A line of a log; `before` are those before it."""

    log: Path
    number: int
    text: str
    before: tuple[str, ...] = ()


@frozen(kw_only=True)
class Cause:
    """A rule, and where it was seen; `also` are other logs that say the same."""

    rule: Rule
    seen: Line
    also: tuple[Path, ...] = ()


@frozen(kw_only=True)
class Diagnosis:
    """What is known of one step's failure; where no rule knows any, its first error."""

    causes: tuple[Cause, ...] = ()
    first: Line | None = None


@frozen
class _Text:
    """The end of a log, and how many lines come before."""

    skipped: int
    data: bytes


def rules_of(directory: RunDirectory, environ: Mapping[str, str]) -> tuple[Rule, ...]:
    """What the plugins of this run know; one that is no longer installed knows nothing."""
    hooks = Hooks(trace=bool(environ.get("HPCTRAIN_TRACE")))
    for event in directory.record.read():
        for said in event.get("plugins", ()) if event["event"] == "created" else ():
            kind, _, name = str(said).split(" ", 1)[0].partition(":")
            try:
                entry = loading.find(kind, name)
                hooks.add(entry, loading.load(entry))
            except (HpctrainError, KeyError):
                continue
    return tuple(rule for answer in hooks.call("diagnose_rules") for rule in answer)


def diagnose(directory: RunDirectory, step: str, rules: Iterable[Rule]) -> Diagnosis:
    """What the rules find in the logs of a step, the surest first."""
    texts = {path: _tail(path) for path in _logs(directory, step)}
    causes = [cause for rule in rules for cause in _causes(rule, texts)]
    causes.sort(key=lambda c: ORDER.index(c.rule.sure) if c.rule.sure in ORDER else len(ORDER))
    if causes:
        return Diagnosis(causes=tuple(causes[:MOST]))
    errors = (_line(path, text, match) for path, text in texts.items() if (match := _ERROR.search(text.data)))
    return Diagnosis(first=next(errors, None))


def _logs(directory: RunDirectory, step: str) -> Iterator[Path]:
    """Those of the ranks in their order, then the job's own."""
    ranks = directory.logs.glob(f"{step}.rank*.log")
    yield from sorted(ranks, key=lambda path: (len(path.name), path.name))
    if directory.log(step).is_file():
        yield directory.log(step)


def _tail(path: Path) -> _Text:
    with path.open("rb") as file:
        start = max(file.seek(0, os.SEEK_END) - TAIL, 0)
        file.seek(0)
        lines = 0
        while file.tell() < start:
            lines += file.read(min(1 << 20, start - file.tell())).count(b"\n")
        return _Text(lines, file.read())


def _causes(rule: Rule, texts: Mapping[Path, _Text]) -> Iterator[Cause]:
    pattern = re.compile(rule.pattern.encode(), re.MULTILINE)
    hits = [(path, match) for path, text in texts.items() if (match := pattern.search(text.data))]
    if hits:
        (path, match), *others = hits
        also = tuple(other for other, _ in others)
        yield Cause(rule=rule, seen=_line(path, texts[path], match), also=also)


def _line(path: Path, text: _Text, match: re.Match[bytes]) -> Line:
    """The whole line in which the match begins."""
    begin = text.data.rfind(b"\n", 0, match.start()) + 1
    end = text.data.find(b"\n", match.start())
    *before, line = _lines(text.data[: end if end >= 0 else None])
    number = text.skipped + text.data.count(b"\n", 0, begin) + 1
    return Line(log=path, number=number, text=line, before=tuple(before[-BEFORE:]))


def _lines(data: bytes) -> list[str]:
    return [line.rpartition("\r")[2] for line in data.decode("utf-8", "replace").split("\n")]
