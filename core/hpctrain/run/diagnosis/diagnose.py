"""Why a step failed: what its program says itself, and the rules of plugins and core, found in its logs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from hpctrain.errors import HpctrainError
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import installed, names, switched_off
from hpctrain.model.job import Rule
from hpctrain.run.diagnosis import failures, tracebacks
from hpctrain.run.diagnosis.printed import Line, Printed, read_all
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output.placed import earlier_sizes, rank_logs
from hpctrain.run.steps.status import StepState

ORDER = (failures.CERTAIN, failures.LIKELY, failures.CONSEQUENCE, failures.GUESS)
MOST = 3
"""Causes that are told; with more nobody knows where to begin."""
ANYWHERE = ("schedulers", "environments")
"""Plugins whose rules hold for any log; those of a cluster and of a trainer hold for theirs."""
_STATED = re.compile(
    failures.RANK + r"error\[(?P<code>[a-z][a-z0-9-]*)\]: (?P<message>.*)(?P<details>(?:\n +\w+: .*)*)", re.M
)
_HINT = re.compile(r"^ +hint: (.*)$", re.M)
_ERROR = re.compile(r"(?:Error|Exception)\b|\berror(?:\[|:)|\bFATAL\b|\bfatal:|\bKilled\b|\bAborted\b")


@frozen(kw_only=True)
class Cause:
    """A rule, and where it was seen; `also` are other logs that say the same."""

    rule: Rule
    evidence: Line
    also: tuple[str, ...] = ()


@frozen(kw_only=True)
class Diagnosis:
    """What is known of one failure; where no rule knows any, its first error."""

    causes: tuple[Cause, ...] = ()
    first: Line | None = None


def rules_of(directory: RunDirectory, environ: Mapping[str, str]) -> tuple[Rule, ...]:
    """What the plugins of this run know, before core; one that is no longer installed knows nothing."""
    off = switched_off(environ)
    plugin_ids = []
    for event in directory.record.read():
        plugins = event.get("plugins") if event["event"] == "created" else None
        for plugin_id in plugins if isinstance(plugins, list) else ():
            kind, _, name = str(plugin_id).split(" ", 1)[0].partition(":")
            if kind != "hooks" or name not in off:
                plugin_ids.append((kind, name))
    return (*_brought(plugin_ids, environ), *failures.rules())


def rules_anywhere(environ: Mapping[str, str], cluster: str = "", trainer: str = "") -> tuple[Rule, ...]:
    """What is asked of a log that is no run's; first those of the cluster and the trainer, where named."""
    named = [(kind, name) for kind, name in (("clusters", cluster), ("trainers", trainer)) if name]
    for kind, name in named:
        loading.find(kind, name)
    entries = installed()
    others = [(kind, name) for kind in ANYWHERE for name in names(kind, entries)]
    return (*_brought(named, environ), *failures.rules(), *_brought(others, environ))


def _brought(plugin_ids: Iterable[tuple[str, str]], environ: Mapping[str, str]) -> Iterator[Rule]:
    hooks = Hooks(trace=bool(environ.get("HPCTRAIN_TRACE")))
    for kind, name in plugin_ids:
        with contextlib.suppress(HpctrainError, KeyError):
            entry = loading.find(kind, name)
            hooks.add(entry, loading.load(entry))
    return (rule for answer in hooks.call("diagnose_rules") for rule in answer)


def diagnose(directory: RunDirectory, step: StepState, rules: Iterable[Rule]) -> Diagnosis:
    """What the last attempt's logs and its end tell: the program's own words, then rules, surest first."""
    logs = read_all(dict(_logs(directory, step.step)), earlier_sizes(directory, step.step))
    code = f"exit code {step.exit_code}\n" if step.exit_code is not None else ""
    ended = Printed(log=failures.ENDED, text=f"{code}{step.reason}\n")
    return diagnose_logs(list(logs.values()), rules, (ended,))


def diagnose_logs(logs: Iterable[Printed], rules: Iterable[Rule], ended: Iterable[Printed] = ()) -> Diagnosis:
    """The same of any logs, and of what else is known of the end."""
    logs = list(logs)
    texts = {printed.log: tracebacks.without_consequences(printed) for printed in (*logs, *ended)}
    matched = [cause for rule in rules for cause in _causes(rule, texts)]
    matched.sort(key=lambda c: ORDER.index(c.rule.sure) if c.rule.sure in ORDER else len(ORDER))
    causes = _distinct([*_stated(texts, matched), *matched])
    sure = [cause for cause in causes if cause.rule.sure not in failures.WEAK]
    if sure:
        return Diagnosis(causes=tuple(sure[:MOST]))
    raised = tracebacks.first(logs)
    if causes and raised is None:
        return Diagnosis(causes=tuple(causes[:1]))
    return Diagnosis(first=raised or _first_error(logs))


def _stated(texts: Mapping[str, Printed], matched: Iterable[Cause]) -> Iterator[Cause]:
    """The last `error[...]` that our part of the step printed, with its hint; without one, a rule's fix."""
    hits = [(log, hit) for log, printed in texts.items() for hit in list(_STATED.finditer(printed.text))[-1:]]
    if not hits:
        return
    (log, match), *later_hits = hits
    line = texts[log].line(match.start())
    hint = _HINT.search(match["details"])
    rule = next((c.rule for c in matched if c.evidence.place == line.place), None)
    if hint is None and rule is not None:
        return
    yield Cause(
        rule=Rule(
            name=match["code"],
            pattern=_STATED.pattern,
            cause=match["message"].strip(),
            fix=hint.group(1).strip() if hint else "",
            sure=failures.CERTAIN,
            source="the step's own words",
        ),
        evidence=line,
        also=tuple(log_name for log_name, _ in later_hits),
    )


def _distinct(causes: Iterable[Cause]) -> list[Cause]:
    """The first cause for each line of a log, and the first of each name."""
    distinct: list[Cause] = []
    for cause in causes:
        if all(c.rule.name != cause.rule.name and c.evidence.place != cause.evidence.place for c in distinct):
            distinct.append(cause)
    return distinct


def _first_error(logs: Iterable[Printed]) -> Line | None:
    """The first line that speaks of an error, by rank."""
    hits = ((printed, match) for printed in logs if (match := _ERROR.search(printed.text)))
    return next((printed.line(match.start()) for printed, match in hits), None)


def _logs(directory: RunDirectory, step: str) -> Iterator[tuple[str, Path]]:
    """Those of the ranks in their order, then the job's own."""
    paths = rank_logs(directory, step)
    if directory.log(step).is_file():
        paths.append(directory.log(step))
    yield from ((str(path.relative_to(directory.path)), path) for path in paths)


def _causes(rule: Rule, texts: Mapping[str, Printed]) -> Iterator[Cause]:
    pattern = re.compile(rule.pattern, re.MULTILINE)
    hits = [(log, match) for log, printed in texts.items() if (match := pattern.search(printed.text))]
    if hits:
        (log, match), *later_hits = hits
        also = tuple(log_name for log_name, _ in later_hits)
        yield Cause(rule=rule, evidence=texts[log].line(match.start()), also=also)
