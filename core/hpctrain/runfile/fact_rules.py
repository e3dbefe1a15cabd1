"""What the types of a cluster cannot say: dates, sources that exist, patterns that compile."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpctrain.model.cluster import Cluster, NetVar, Network, Place, Queue, Source, Storage
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.keys import Keys, nearest
from hpctrain.runfile.rules import check_keys, check_name, check_variables
from hpctrain.runfile.strict import Check

_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_NOT_FACTS = ("source", "defaults", "facts", "verify")


def _check_day(text: str) -> Iterator[Fault]:
    try:
        datetime.date.fromisoformat(text if _DAY.match(text) else "")
    except ValueError:
        says = f"is {json.dumps(text)}; a day such as 2026-07-22 is needed"
        yield Fault(code="wrong-value", says=says, value='"2026-07-22"')


def _check_pattern(text: str) -> Iterator[Fault]:
    try:
        re.compile(text)
    except re.error as error:
        says = f"is {json.dumps(text)}, which is no regular expression: {error.msg}"
        yield Fault(code="wrong-value", says=says)


def _check_patterns(texts: tuple[str, ...]) -> Iterator[Fault]:
    for number, text in enumerate(texts):
        yield from (fault.under(number) for fault in _check_pattern(text))


_FIELDS = ("user", "account", "uid", "home")
_FIELD = re.compile(r"(?<!\$)\{([^{}]*)\}")


def _check_template(text: str) -> Iterator[Fault]:
    """A field that nobody fills in would stay in the path as it is."""
    for name in _FIELD.findall(text):
        if name not in _FIELDS:
            near = nearest(name, _FIELDS)
            says = f"is {json.dumps(text)}; {{{name}}} is none of {', '.join(f'{{{f}}}' for f in _FIELDS)}"
            value = json.dumps(text.replace(f"{{{name}}}", f"{{{near[0]}}}")) if near else ""
            yield Fault(code="wrong-value", says=says, value=value)


def _check_variable(text: str) -> Iterator[Fault]:
    yield from (Fault(code=f.code, message=f.message) for f in check_variables({text: ""}))


def _check_cluster(cluster: Cluster) -> Iterator[Fault]:
    names = [place.name for place in cluster.place]
    queues = [queue.name for queue in cluster.queue]
    for number, place in enumerate(cluster.place):
        if place.name in names[:number]:
            message = f"{json.dumps(place.name)} is the name of two places"
            yield Fault(code="duplicate-key", message=message, path=("place", number, "name"))
        if place.queue and place.queue not in queues:
            yield absent("queue", place.queue, queues, ("place", number, "queue"))


def absent(what: str, name: str, known: Iterable[str], path: Keys, *, at_key: bool = False) -> Fault:
    """A name that points at nothing, with the nearest that is there."""
    near = nearest(name, known)
    message = f"no {what} {json.dumps(name, ensure_ascii=False)}"
    value = json.dumps(near[0], ensure_ascii=False) if near and not at_key else ""
    hint = near[0] if near and at_key else ""
    return Fault(code="unknown-name", message=message, value=value, hint=hint, path=path, at_key=at_key)


def source_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Every `source` of a table must be the id of a `[[source]]` row."""
    rows = data.get("source")
    rows = rows if isinstance(rows, list) else []
    known = {str(row.get("id")) for row in rows if isinstance(row, dict)}
    todo: list[tuple[Keys, Any]] = [((k,), v) for k, v in data.items() if k not in _NOT_FACTS]
    while todo:
        path, value = todo.pop()
        if isinstance(value, list):
            todo += [((*path, number), inner) for number, inner in enumerate(value)]
        elif isinstance(value, dict):
            source = value.get("source")
            if isinstance(source, str) and source not in known:
                yield absent("source", source, known, (*path, "source"))
            todo += [((*path, key), inner) for key, inner in value.items()]


FACT_CHECKS: Mapping[Any, Check] = {
    Cluster: _check_cluster,
    (Cluster, "name"): check_name,
    (Cluster, "storage"): check_keys,
    (Cluster, "detect"): _check_patterns,
    (Source, "checked"): _check_day,
    (NetVar, "name"): _check_variable,
    (Network, "proof"): _check_pattern,
    (Network, "refuse"): _check_pattern,
    (Place, "env"): check_variables,
    (Place, "name"): check_name,
    (Queue, "name"): check_name,
    (Storage, "path"): _check_template,
}
