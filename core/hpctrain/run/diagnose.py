"""Why a step failed: what its program says itself, and the rules of plugins and core, found in its logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from hpctrain.errors import HpctrainError
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import switched_off
from hpctrain.model.job import Rule
from hpctrain.run import failures
from hpctrain.run.directory import RunDirectory

TAIL = 4 << 20
"""Bytes read of the end of each log: what ended a step stands there."""
ORDER = (failures.CERTAIN, failures.LIKELY)
MOST = 3
"""Causes that are told; with more nobody knows where to begin."""
BEFORE = 15
_STATED = re.compile(
    failures.RANK.encode()
    + rb"error\[(?P<code>[a-z][a-z0-9-]*)\]: (?P<message>.*)(?P<details>(?:\n +\w+: .*)*)",
    re.M,
)
_HINT = re.compile(rb"^ +hint: (.*)$", re.M)
_TRACEBACK = re.compile(rb"^(?P<start>.*)Traceback \(most recent call last\):\n", re.M)
_CONSEQUENCE = re.compile(r"DistBackendError|Connection (?:reset|closed)|ChildFailedError|Broken pipe")
"""How ranks end because another one ended before them."""
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
    evidence: Line
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
    off = switched_off(environ)
    for event in directory.record.read():
        plugins = event.get("plugins") if event["event"] == "created" else None
        for plugin_id in plugins if isinstance(plugins, list) else ():
            kind, _, name = str(plugin_id).split(" ", 1)[0].partition(":")
            if kind == "hooks" and name in off:
                continue
            try:
                entry = loading.find(kind, name)
                hooks.add(entry, loading.load(entry))
            except (HpctrainError, KeyError):
                continue
    brought = (rule for answer in hooks.call("diagnose_rules") for rule in answer)
    return (*brought, *failures.RULES)


def diagnose(directory: RunDirectory, step: str, rules: Iterable[Rule]) -> Diagnosis:
    """What a step's logs and exit record tell: its program's own words, then the rules, the surest first."""
    texts = {path: _tail(path) for path in _logs(directory, step)}
    exit_path = directory.path / "steps" / step / "exit"
    records = {exit_path: _tail(exit_path)} if exit_path.is_file() else {}
    matched = [cause for rule in rules for cause in _causes(rule, {**texts, **records})]
    matched.sort(key=lambda c: ORDER.index(c.rule.sure) if c.rule.sure in ORDER else len(ORDER))
    causes = _distinct([*_stated(texts, matched), *matched])
    sure = [cause for cause in causes if cause.rule.sure != failures.GUESS]
    if causes:
        return Diagnosis(causes=tuple((sure or causes[:1])[:MOST]))
    return Diagnosis(first=_first_traceback(texts) or _first_error(texts))


def _stated(texts: Mapping[Path, _Text], matched: Iterable[Cause]) -> Iterator[Cause]:
    """The last `error[...]` that our part of the step printed, with its hint; without one, a rule's fix."""
    hits = [(path, hit) for path, text in texts.items() for hit in list(_STATED.finditer(text.data))[-1:]]
    if not hits:
        return
    (path, match), *later_hits = hits
    line = _line(path, texts[path], match.start())
    hint = _HINT.search(match["details"])
    rule = next((c.rule for c in matched if _place(c.evidence) == _place(line)), None)
    if hint is None and rule is not None:
        return
    fix = hint.group(1) if hint else b""
    yield Cause(
        rule=Rule(
            name=match["code"].decode(),
            pattern=_STATED.pattern.decode(),
            cause=match["message"].decode("utf-8", "replace").strip(),
            fix=fix.decode("utf-8", "replace").strip(),
            sure=failures.CERTAIN,
            source="the step's own words",
        ),
        evidence=line,
        also=tuple(log for log, _ in later_hits),
    )


def _distinct(causes: Iterable[Cause]) -> list[Cause]:
    """The first cause for each line of a log, and the first of each name."""
    distinct: list[Cause] = []
    for cause in causes:
        if all(
            c.rule.name != cause.rule.name and _place(c.evidence) != _place(cause.evidence) for c in distinct
        ):
            distinct.append(cause)
    return distinct


def _place(line: Line) -> tuple[Path, int]:
    return line.log, line.number


def _first_traceback(texts: Mapping[Path, _Text]) -> Line | None:
    """The last words of the first traceback by rank that is no consequence of another rank's end."""
    ends = [end for path, text in texts.items() if (end := _traceback_end(path, text))]
    ends.sort(key=lambda line: bool(_CONSEQUENCE.search(line.text)))
    return ends[0] if ends else None


def _traceback_end(path: Path, text: _Text) -> Line | None:
    """The exception that closes the first traceback of a log; its lines may begin with the rank."""
    match = _TRACEBACK.search(text.data)
    if match is None:
        return None
    position = match.end()
    while position < len(text.data):
        end = text.data.find(b"\n", position)
        end = len(text.data) if end < 0 else end
        words = text.data[position:end].removeprefix(match["start"])
        if words.strip() and not words.startswith(b" "):
            return _line(path, text, position)
        position = end + 1
    return None


def _first_error(texts: Mapping[Path, _Text]) -> Line | None:
    """The first line that speaks of an error, by rank."""
    hits = ((path, text, match) for path, text in texts.items() if (match := _ERROR.search(text.data)))
    return next((_line(path, text, match.start()) for path, text, match in hits), None)


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
        (path, match), *later_hits = hits
        also = tuple(log for log, _ in later_hits)
        yield Cause(rule=rule, evidence=_line(path, texts[path], match.start()), also=also)


def _line(path: Path, text: _Text, start: int) -> Line:
    """The whole line in which the byte `start` stands."""
    begin = text.data.rfind(b"\n", 0, start) + 1
    end = text.data.find(b"\n", start)
    *before, line = _lines(text.data[: end if end >= 0 else None])
    number = text.skipped + text.data.count(b"\n", 0, begin) + 1
    return Line(log=path, number=number, text=line, before=tuple(before[-BEFORE:]))


def _lines(data: bytes) -> list[str]:
    return [line.rpartition("\r")[2] for line in data.decode("utf-8", "replace").split("\n")]
