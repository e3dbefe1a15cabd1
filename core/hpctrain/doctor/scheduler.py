"""What the scheduler says of queues, nodes and accounts, beside what the facts say.

Its plugin names the programs (`fact_questions`) and reads them (`live_facts`); what is compared is the
same for all: the words of a queue must be there, and its limits hold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from hpctrain.doctor.question import Answer, Finding, Question, Verdict, known
from hpctrain.doctor.site import Site, is_version
from hpctrain.model.cluster import Cluster, Queue
from hpctrain.model.duration import Duration
from hpctrain.model.reading import Reading

AREA = "scheduler"
SECONDS = 24.0
"""For all of its programs: qstat of ten thousand nodes takes that long, and Slurm has three to ask."""
MOST = 160
"""Characters of an answer that are shown."""
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
        return self.is_default and not {_option(word) for word in self.ask} & {
            _option(word) for word in words
        }


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
            yield known("scheduler", line)
        return
    asked = module.fact_questions(site.cluster, site.environ.get("USER", ""))
    seconds = SECONDS / max(1, len({argv[0] for argv in asked.values()}))
    for name, argv in asked.items():
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
    scheduler = site.cluster.scheduler
    live = [Row(frozenset(row.pop("ask", {}).get(scheduler, ())), row) for row in map(dict, rows.values())]
    if live:
        for queue in site.cluster.queue:
            yield from _queue(site, queue, live)


def _version(site: Site, said: Mapping[str, Any]) -> Iterator[Finding]:
    for key, value in said.items():
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
        )


def _hardware(cluster: Cluster, said: Mapping[str, Any]) -> Iterator[Finding]:
    """A node may have more cores and memory than jobs may use, never less."""
    hardware = cluster.hardware
    least = {"cores_per_node": 1.0, "memory_gb": LESS_MEMORY, "nodes": FEWER_NODES, "gpus_per_node": 1.0}
    for key, share in least.items():
        expected = getattr(hardware, key)
        if key not in said or not expected:
            continue
        found = said[key]
        is_fine = found == expected if key == "gpus_per_node" else found >= expected * share
        yield Finding(
            area=AREA,
            fact=f"hardware.{key}",
            verdict=Verdict.OK if is_fine else Verdict.DIFFERS,
            expected=f"{expected:g}",
            found=f"{found:g}",
            source=hardware.source,
            todo="" if is_fine else f"mend [hardware] {key}",
        )


def _accounts(site: Site, accounts: Sequence[str] | None) -> Iterator[Finding]:
    if accounts is None:
        return
    policy = site.cluster.policy
    names = {name.lower() for name in accounts}
    shown = " ".join(accounts) or "none"
    wanted = site.account
    if not wanted:
        verdict, todo = Verdict.UNKNOWN, f"hpctrain doctor --account {accounts[0]}" if accounts else ""
    elif wanted.lower() in names:
        verdict, todo = Verdict.OK, ""
    else:
        verdict, todo = Verdict.DIFFERS, "the account is not one of yours, or is spelled otherwise"
    fact = "accounts that you may charge"
    yield Finding(
        area=AREA, fact=fact, verdict=verdict, expected=wanted, found=shown, source=policy.source, todo=todo
    )


def _queue(site: Site, queue: Queue, live: Sequence[Row]) -> Iterator[Finding]:
    """The words of a queue that these rows can know, and the limits that they show."""
    words = queue.ask.get(site.cluster.scheduler, ())
    options = {_option(word) for row in live for word in row.ask}
    known_words = {word for row in live for word in row.ask}
    spoken = [word for word in words if _option(word) in options]
    sure = "" if queue.sure else " (not sure)"
    if missing := [word for word in spoken if word not in known_words]:
        there = " ".join(sorted(known_words))
        found = f"no {' '.join(missing)}: there are {there}"
        yield _line(queue, "", Verdict.DIFFERS, " ".join(spoken) + sure, found[:MOST])
        return
    for row in live:
        if row.ask and row.takes(words):
            yield _line(queue, "", Verdict.OK, " ".join(sorted(row.ask)) + sure, "is there")
            # A QoS stands behind its partition in the words of a queue, and lifts its limits.
            is_narrowest = not words or words[-1] in row.ask
            for key, found in row.limits.items():
                yield from _limit(site.cluster, queue, key, found, is_narrowest=is_narrowest)


def _option(word: str) -> str:
    """`--partition=batch` and `-q batch` without the name."""
    return _OPTION.split(word)[0]


def _limit(cluster: Cluster, queue: Queue, key: str, found: Any, *, is_narrowest: bool) -> Iterator[Finding]:
    expected = getattr(queue, key, None)
    if expected is None or key not in ("max_time", "max_nodes", "jobs_per_user", "min_nodes"):
        return
    sure = "" if queue.sure else " (not sure)"
    if key == "max_time":
        wanted, actual = expected.minutes, Duration.parse(found).minutes
        shown, told = expected.short, str(found)
    else:
        wanted, actual = float(expected), float(found)
        shown, told = f"{expected}", f"{found}"
    top = max(_of_same_words(cluster, queue, key), default=wanted)
    if actual > wanted and (not is_narrowest or wanted < top):
        return  # a smaller bin of a larger queue, or of one that another word narrows: the site's own rule
    verdict = Verdict.OK if actual == wanted else Verdict.DIFFERS if is_narrowest else Verdict.UNKNOWN
    yield _line(queue, key, verdict, f"{shown}{sure}", told)


def _of_same_words(cluster: Cluster, queue: Queue, key: str) -> Iterator[float]:
    for other in cluster.queue:
        value = getattr(other, key)
        if other.ask == queue.ask and value is not None:
            yield value.minutes if isinstance(value, Duration) else float(value)


def _line(queue: Queue, key: str, verdict: Verdict, expected: str, found: str) -> Finding:
    table = f"queue {queue.name}"
    mend = f"mend {key or 'ask'} of [[queue]] {queue.name}" if verdict is Verdict.DIFFERS else ""
    return Finding(
        area=AREA,
        fact=f"{table}: {key}" if key else table,
        verdict=verdict,
        expected=expected,
        found=found,
        source=queue.source,
        todo=mend,
    )
