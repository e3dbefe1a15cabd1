"""What the scheduler says of queues, nodes and accounts, beside what the facts say.

Its plugin names the programs (`fact_questions`) and reads them (`live_facts`); what is compared is the
same for all: the words of a queue must be there, and its limits hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from hpctrain.doctor.question import MOST, Answer, Finding, Question, Verdict, stated
from hpctrain.doctor.site import Site, is_version
from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.reading import Reading

AREA = "scheduler"
SECONDS = 24.0
"""For all of its programs: qstat of ten thousand nodes takes that long, and Slurm has three to ask."""
LESS_MEMORY = 0.95
"""Of what the facts say: schedulers leave some of a node to its system, and sites round."""
FEWER_NODES = 0.9
"""Of all nodes some are always away."""
_OPTION = re.compile(r"[= ]")


@frozen
class Row:
    """A queue as the scheduler knows it: what asks for it, and its limits."""

    ask: frozenset[str]
    limits: Mapping[str, Any]
    is_default: bool = False
    """Where jobs go that name no other of its kind."""

    def takes(self, words: Sequence[str]) -> bool:
        """Whether a job with these words is in it."""
        if self.ask <= set(words):
            return True
        options = {_option(word) for word in self.ask}
        return self.is_default and not any(_option(word) in options for word in words)


def questions(site: Site) -> Iterator[Question]:
    """One for each program that the scheduler's plugin names."""
    module = site.scheduler
    if module is None or not hasattr(module, "fact_questions"):
        if site.cluster.queue:
            line = Finding(
                area=AREA,
                fact="queues and their limits",
                verdict=Verdict.SILENT,
                found=f"the plugin of {site.cluster.scheduler} has no `fact_questions`",
                todo="docs/doctor.md: what a scheduler's plugin may add",
            )
            yield stated("scheduler", line)
        return
    programs = module.fact_questions(
        site.cluster, site.environ.get("USER") or site.environ.get("LOGNAME", "")
    )
    seconds = SECONDS / max(1, len({argv[0] for argv in programs.values()}))
    for name, argv in programs.items():
        yield _question(site, name, tuple(argv), seconds)


def _question(site: Site, name: str, argv: tuple[str, ...], seconds: float) -> Question:
    def judge(answer: Answer) -> Iterator[Finding]:
        readings = tuple(site.scheduler.live_facts({name: answer.out})) if site.scheduler else ()
        yield from _compared(site, readings)

    return Question(
        name=f"scheduler {name}",
        area=AREA,
        fact=name,
        argv=argv,
        judge=judge,
        seconds=seconds,
        todo=f"by hand: {' '.join(argv)}",
    )


def _compared(site: Site, readings: Sequence[Reading]) -> Iterator[Finding]:
    tables: dict[str, dict[str, Any]] = defaultdict(dict)
    rows: dict[str, dict[str, Any]] = defaultdict(dict)
    for reading in readings:
        place = rows[reading.row] if reading.table == "queue" else tables[reading.table]
        place[reading.key] = reading.value
    yield from _version(site, tables["facts.system"])
    yield from _hardware(site.cluster, tables["hardware"])
    yield from _accounts(site, tables["policy"].get("accounts"))
    live = [_row(row, site.cluster.scheduler) for row in rows.values()]
    if live:
        for queue in site.cluster.queue:
            yield from _queue(site, queue, live)


def _row(readings: Mapping[str, Any], scheduler: str) -> Row:
    limits = {key: value for key, value in readings.items() if key not in ("ask", "default")}
    return Row(frozenset(readings.get("ask", {}).get(scheduler, ())), limits, bool(readings.get("default")))


def _version(site: Site, readings: Mapping[str, Any]) -> Iterator[Finding]:
    for key, value in readings.items():
        expected, source = site.prose(key)
        is_equal = is_version(expected, str(value))
        verdict = Verdict.UNKNOWN if is_equal is None else Verdict.OK if is_equal else Verdict.DIFFERS
        yield Finding(
            area=AREA,
            fact=f"version of {key}",
            verdict=verdict,
            expected=expected,
            found=str(value),
            source=source,
            todo=f"mend [facts.system] {key}" if verdict is Verdict.DIFFERS else "",
            key=("facts.system", key),
            value=str(value),
        )


def _hardware(cluster: Cluster, readings: Mapping[str, Any]) -> Iterator[Finding]:
    """A node may have more cores and memory than jobs may use, never less."""
    hardware = cluster.hardware
    least = {"cores_per_node": 1.0, "memory_gb": LESS_MEMORY, "nodes": FEWER_NODES, "gpus_per_node": 1.0}
    for key, share in least.items():
        expected = getattr(hardware, key)
        if key not in readings or not expected:
            continue
        count = readings[key]
        is_fine = count == expected if key == "gpus_per_node" else count >= expected * share
        yield Finding(
            area=AREA,
            fact=f"hardware.{key}",
            verdict=Verdict.OK if is_fine else Verdict.DIFFERS,
            expected=f"{expected:g}",
            found=f"{count:g}",
            source=hardware.source,
            todo="" if is_fine else f"mend [hardware] {key}",
            key=("hardware", key),
            value=count,
        )


def _accounts(site: Site, accounts: Sequence[str] | None) -> Iterator[Finding]:
    if accounts is None:
        return
    account = site.account
    if not account:
        verdict, todo = Verdict.UNKNOWN, f"hpctrain doctor --account {accounts[0]}" if accounts else ""
    elif account.lower() in {name.lower() for name in accounts}:
        verdict, todo = Verdict.OK, ""
    else:
        verdict, todo = Verdict.DIFFERS, "the account is not one of yours, or is spelled otherwise"
    yield Finding(
        area=AREA,
        fact="accounts that you may charge",
        verdict=verdict,
        expected=account,
        found=" ".join(accounts) or "none",
        source=site.cluster.policy.source,
        todo=todo,
    )


def _queue(site: Site, queue: Queue, live: Sequence[Row]) -> Iterator[Finding]:
    """The words of a queue that these rows can know, and the limits that they show."""
    words = queue.ask.get(site.cluster.scheduler, ())
    options = {_option(word) for row in live for word in row.ask}
    known_words = {word for row in live for word in row.ask}
    spoken = [word for word in words if _option(word) in options]
    sure = "" if queue.sure else " (not sure)"
    if missing := [word for word in spoken if word not in known_words]:
        listing = " ".join(sorted(known_words))
        answer = f"no {' '.join(missing)}: there are {listing}"
        yield _line(queue, "", Verdict.DIFFERS, " ".join(spoken) + sure, answer[:MOST])
        return
    for row in live:
        if row.ask and row.takes(words):
            yield _line(queue, "", Verdict.OK, " ".join(sorted(row.ask)) + sure, "is there")
            # A QoS stands behind its partition in the words of a queue, and lifts its limits.
            is_narrowest = not words or words[-1] in row.ask
            for key in row.limits:
                yield from _limit(site.cluster, queue, key, row, is_narrowest=is_narrowest)


def _option(word: str) -> str:
    """`--partition=batch` and `-q batch` without the name."""
    return _OPTION.split(word)[0]


def _limit(cluster: Cluster, queue: Queue, key: str, row: Row, *, is_narrowest: bool) -> Iterator[Finding]:
    """What a row says of one limit; smaller bins of it, and what a QoS narrows, are the site's own rule."""
    value = row.limits[key]
    expected = getattr(queue, key, None)
    if expected is None or key not in ("max_time", "max_nodes", "jobs_per_user", "min_nodes"):
        return
    sure = "" if queue.sure else " (not sure)"
    if key == "max_time":
        limit, actual = expected.minutes, Duration.parse(value).minutes
        limit_text, live_text = expected.short, str(value)
    else:
        limit, actual = float(expected), float(value)
        limit_text, live_text = f"{expected}", f"{value}"
    top = max(_of_queues_in(row, cluster, key), default=limit)
    if actual > limit and (not is_narrowest or limit < top):
        return
    verdict = Verdict.OK if actual == limit else Verdict.DIFFERS if is_narrowest else Verdict.UNKNOWN
    line = _line(queue, key, verdict, f"{limit_text}{sure}", live_text)
    yield attrs.evolve(line, key=("queue", queue.name, key), value=value)


def _of_queues_in(row: Row, cluster: Cluster, key: str) -> Iterator[float]:
    """This limit of every queue of the facts whose jobs are in this row."""
    for queue in cluster.queue:
        value = getattr(queue, key)
        if value is not None and row.takes(queue.ask.get(cluster.scheduler, ())):
            yield value.minutes if isinstance(value, Duration) else float(value)


def _line(queue: Queue, key: str, verdict: Verdict, expected: str, text: str) -> Finding:
    table = f"queue {queue.name}"
    mend = f"mend {key or 'ask'} of [[queue]] {queue.name}" if verdict is Verdict.DIFFERS else ""
    return Finding(
        area=AREA,
        fact=f"{table}: {key}" if key else table,
        verdict=verdict,
        expected=expected,
        found=text,
        source=queue.source,
        todo=mend,
    )
