"""What the types of a cluster cannot say: dates, sources that exist, patterns that compile."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpctrain.model.cluster import Cluster, Place, Policy, Queue, Source, Storage
from hpctrain.model.network import PARTS, SPAN, Network, Precedent, TrainingVar
from hpctrain.runfile.faults import Check, Fault
from hpctrain.runfile.judging.rules import check_keys, check_name, check_variables
from hpctrain.runfile.keys import Keys, nearest

_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_NOT_FACTS = ("source", "defaults", "facts", "verify")


def _check_day(text: str) -> Iterator[Fault]:
    try:
        datetime.date.fromisoformat(text if _DAY.match(text) else "")
    except ValueError:
        complaint = f"is {json.dumps(text)}; a day such as 2026-07-22 is needed"
        yield Fault(code="wrong-value", complaint=complaint, value='"2026-07-22"')


def _check_pattern(text: str) -> Iterator[Fault]:
    try:
        re.compile(text)
    except re.error as error:
        complaint = f"is {json.dumps(text)}, which is not a regular expression: {error.msg}"
        yield Fault(code="wrong-value", complaint=complaint)


def _check_patterns(texts: tuple[str, ...]) -> Iterator[Fault]:
    for number, text in enumerate(texts):
        yield from (fault.under(number) for fault in _check_pattern(text))


_FIELD = re.compile(r"(?<!\$)\{([^{}]*)\}")


def _check_template(*fields: str) -> Check:
    """A field that nobody fills in would stay in the text as it is."""

    def check(text: str) -> Iterator[Fault]:
        for name in _FIELD.findall(text):
            if name not in fields:
                near = nearest(name, fields)
                listed = ", ".join(f"{{{field}}}" for field in fields)
                complaint = f"is {json.dumps(text)}; {{{name}}} is none of {listed}"
                value = json.dumps(text.replace(f"{{{name}}}", f"{{{near[0]}}}")) if near else ""
                yield Fault(code="wrong-value", complaint=complaint, value=value)

    return check


def _check_owners(names: tuple[str, ...]) -> Iterator[Fault]:
    check = _check_template("account", "project")
    for number, name in enumerate(names):
        yield from (fault.under(number) for fault in check(name))
        if not re.fullmatch(r"@?[^\s@*?\[\]\"'`$;&|<>()]+", name):
            complaint = f"is {json.dumps(name)}; an owner is one name of a user, or @ and that of a group"
            yield Fault(code="wrong-value", complaint=complaint, path=(number,))


def _check_root(text: str) -> Iterator[Fault]:
    """What no shell sees before the folder is made: all of it would stand in the folder's name."""
    yield from _check_template("user", "account", "project", "uid", "home")(text)
    if "<" in text:
        yield Fault(code="wrong-value", complaint=f"is {json.dumps(text)}; what is in <> is yours to fill in")
    if text.count("$") > text.count("${"):
        right = re.sub(r"\$(\w+)", r"${\1}", text)
        complaint = f"is {json.dumps(text)}; a variable is written ${{NAME}}"
        yield Fault(code="wrong-value", complaint=complaint, value=json.dumps(right) if right != text else "")
    if ":" in text:
        complaint = f"is {json.dumps(text)}; search paths and binds of containers are cut at a colon"
        yield Fault(code="wrong-value", complaint=complaint)


def _check_project(text: str) -> Iterator[Fault]:
    """The pattern that finds the project in an account: one group, or there is nothing to find."""
    wrong = tuple(_check_pattern(text))
    yield from wrong
    if text and not wrong and re.compile(text).groups != 1:
        complaint = f"is {json.dumps(text)}; one group is needed, which is the project: (m[0-9]+)(?:_g)?"
        yield Fault(code="wrong-value", complaint=complaint)


def _check_versions(spans: Mapping[str, str]) -> Iterator[Fault]:
    """Versions of parts of the network, or ranges of them: nobody would meet a misspelled one."""
    for part, span in spans.items():
        if part not in PARTS:
            yield absent("part of a network", part, PARTS, (part,), at_key=True)
        elif not SPAN.fullmatch(span):
            complaint = f'is {json.dumps(span)}; a version or a range is needed, as "1.22" or ">=1.14,<1.17"'
            yield Fault(code="wrong-value", complaint=complaint, path=(part,))


def _check_stack(versions: Mapping[str, str]) -> Iterator[Fault]:
    yield from _check_versions({part: text.partition("-")[0] for part, text in versions.items()})


def _check_values(patterns: Mapping[str, str]) -> Iterator[Fault]:
    yield from check_variables(dict.fromkeys(patterns, ""))
    for name, pattern in patterns.items():
        yield from (fault.under(name) for fault in _check_pattern(pattern))


def _check_variable(text: str) -> Iterator[Fault]:
    yield from (Fault(code=f.code, message=f.message) for f in check_variables({text: ""}))


def _check_cluster(cluster: Cluster) -> Iterator[Fault]:
    places = [place.name for place in cluster.place]
    for number, place in enumerate(cluster.place):
        if place.name in places[:number]:
            message = f"{json.dumps(place.name)} is the name of two places"
            yield Fault(code="duplicate-key", message=message, path=("place", number, "name"))
    queues = [queue.name for queue in cluster.queue]
    for kind, name, legal, path in _references(cluster, places, queues):
        if name and name not in legal:
            yield absent(kind, name, legal, path)
    if cluster.launch.gpu_order == "reversed" and cluster.launch.visible == "one":
        complaint = 'is "reversed", and visible = "one" lets the scheduler choose the GPU of each rank'
        path = ("launch", "gpu_order")
        yield Fault(code="wrong-value", complaint=complaint, value='"forward"', path=path)


def _references(
    cluster: Cluster, places: list[str], queues: list[str]
) -> Iterator[tuple[str, str, list[str], Keys]]:
    """Every name by which a fact points at a row: of what, the name, the rows there are, where it stands."""
    for number, place in enumerate(cluster.place):
        yield "queue", place.queue, queues, ("place", number, "queue")
        yield "place", place.before, places, ("place", number, "before")
    for number, queue in enumerate(cluster.queue):
        yield "queue", queue.before, queues, ("queue", number, "before")
    for role, storage in cluster.storage.items():
        for number, name in enumerate(storage.writable):
            yield "place", name, places, ("storage", role, "writable", number)


def absent(kind: str, name: str, legal: Iterable[str], path: Keys, *, at_key: bool = False) -> Fault:
    """A name that points at nothing, with the nearest that is there."""
    near = nearest(name, legal)
    message = f"no {kind} {json.dumps(name, ensure_ascii=False)}"
    value = json.dumps(near[0], ensure_ascii=False) if near and not at_key else ""
    hint = near[0] if near and at_key else ""
    return Fault(code="unknown-name", message=message, value=value, hint=hint, path=path, at_key=at_key)


def source_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Every `source` of a table must be the id of a `[[source]]` row."""
    rows = data.get("source")
    rows = rows if isinstance(rows, list) else []
    source_ids = {str(row.get("id")) for row in rows if isinstance(row, dict)}
    todo: list[tuple[Keys, Any]] = [((k,), v) for k, v in data.items() if k not in _NOT_FACTS]
    while todo:
        path, value = todo.pop()
        if isinstance(value, list):
            todo += [((*path, number), inner) for number, inner in enumerate(value)]
        elif isinstance(value, dict):
            source = value.get("source")
            if isinstance(source, str) and source not in source_ids:
                yield absent("source", source, source_ids, (*path, "source"))
            todo += [((*path, key), inner) for key, inner in value.items()]


FACT_CHECKS: Mapping[Any, Check] = {
    Cluster: _check_cluster,
    (Cluster, "name"): check_name,
    (Cluster, "storage"): check_keys,
    (Cluster, "detect"): _check_patterns,
    (Source, "checked"): _check_day,
    (TrainingVar, "name"): _check_variable,
    (Network, "proof"): _check_pattern,
    (Network, "refuse"): _check_pattern,
    (Network, "stack"): _check_stack,
    (Precedent, "stack"): _check_versions,
    (Precedent, "var"): _check_values,
    (Precedent, "gpu"): _check_pattern,
    (Place, "env"): check_variables,
    (Place, "name"): check_name,
    (Queue, "name"): check_name,
    (Place, "account"): _check_template("account", "project"),
    (Policy, "project"): _check_project,
    (Storage, "path"): _check_root,
    (Storage, "owners"): _check_owners,
}
