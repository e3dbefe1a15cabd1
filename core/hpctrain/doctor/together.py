"""What compute nodes do together: an all-reduce, its values and its bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from hpctrain.doctor.question import Answer, Finding, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain_job.collectives.measured import gigabytes_per_second
from hpctrain_job.files import documents
from hpctrain_job.node_answers import PYTHON

AREA = "compute nodes"
NAME = "all-reduce"
VALUES, BANDWIDTH = "values of collectives between the nodes", "bandwidth of an all-reduce between the nodes"
SECONDS = 60
"""With the import of torch, and the seconds that the nodes wait for each other."""
OVER = "all_reduce"
PLAIN = "sockets"
"""What has no torch measures the way of TCP alone."""


def question(site: Site, python: str) -> Question:
    """Each node has a line about the values that it got."""

    def judge(answer: Answer) -> Iterator[Finding]:
        row = _row(answer)
        if row is None:
            return
        if row["fault"]:
            yield question_of_values.finding(
                Verdict.DIFFERS, row["fault"], "the node, or its network: name it to the site"
            )
            return
        wrong = [name for name, result in row["operations"].items() if not result["right"]]
        names = ", ".join(dict.fromkeys(name.split()[0] for name in row["operations"]))
        if wrong:
            todo = "do not train with these nodes; name them to the site"
            yield question_of_values.finding(
                Verdict.DIFFERS, f"{', '.join(wrong)}: other values than were sent", todo
            )
        else:
            yield question_of_values.finding(Verdict.OK, f"right: {names} over {row['engine']}")

    question_of_values = Question(
        name=NAME,
        area=AREA,
        fact=VALUES,
        argv=(python or PYTHON, "-m", "hpctrain_job.collectives.measured"),
        judge=judge,
        expected="right",
        source=site.cluster.network.source,
        seconds=SECONDS,
        todo="hpctrain logs hpctrain-doctor",
    )
    return question_of_values


def bandwidth(answers: Iterable[Mapping[str, Answer]]) -> Iterator[Finding]:
    """One line for all: the slowest of them is what a training waits for."""
    rows = [row for report in answers if NAME in report and (row := _row(report[NAME])) and not row["fault"]]
    measured = [(_largest(row), row) for row in rows]
    slowest = min((speed, row["engine"], row["bytes"]) for speed, row in measured) if measured else None
    if slowest is None:
        return
    speed, engine, size = slowest
    speed_text = f"{speed:.2f} GB/s a node, {size / 2**20:.0f} MB over {engine}"
    yield Finding(
        area=AREA,
        fact=BANDWIDTH,
        verdict=Verdict.UNKNOWN,
        found=speed_text,
        todo="" if engine != PLAIN else "TCP alone was measured; --python PATH names one with torch there",
    )


def _largest(row: dict[str, Any]) -> float:
    """Of the largest all-reduce; its size is left in the row."""
    reduced = (result for name, result in row["operations"].items() if name.startswith(OVER))
    result = max(reduced, key=itemgetter("bytes"), default={"bytes": 0, "seconds": 1.0})
    row["bytes"] = result["bytes"]
    return gigabytes_per_second(result, row["world"])


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"right": row["right"] is True, "seconds": float(row["seconds"]), "bytes": int(row["bytes"])}


def _row(answer: Answer) -> dict[str, Any] | None:
    """What the node printed last; None where it is nothing of ours."""
    try:
        row = documents.parse((answer.out.splitlines() or [""])[-1].encode())
        operations = {str(name): _result(result) for name, result in row.get("operations", {}).items()}
        texts = {"engine": str(row.get("engine", "")), "fault": str(row.get("fault", ""))}
        return {**texts, "world": int(row["world"]), "operations": operations}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
