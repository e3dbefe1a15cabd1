"""Network stacks that are known to work or to go wrong, and what a plan says of one that it meets.

Rows of any machine stand in `stacks.toml`, those of one machine in `[[network.precedent]]` of its facts. What
nobody knows of a run (a version, a variable that a module may set) is never met.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster, Source
from hpctrain.model.layer import How
from hpctrain.model.network import Precedent
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.runfile.reading.text import read_toml

TABLE = Path(__file__).with_name("stacks.toml")
EXPERTS = re.compile(r"\b(?:moe_num_experts|num_experts|ep_size|expert_parallel_size)\b\W+(\d+)")
"""How the trainers' files say that tokens go to experts, and so to all ranks."""
_RANGE = re.compile(r"(<=|>=|<|>|)(\d+(?:\.\d+)*)\Z")


@frozen(kw_only=True)
class Use:
    """What a training does with the network, as far as it is known."""

    nodes: int
    stack: Mapping[str, str]
    """Part -> its version."""
    values: Mapping[str, str]
    """The variables that are set."""
    unknown: frozenset[str] = frozenset()
    """Those of which nobody knows."""
    is_whole: bool = True
    """Whether a variable that is in neither is not set; False where a module or a container may set it."""
    scheduler_words: Sequence[str] = ()
    """The words with which the scheduler is asked."""
    all_to_all: bool = False


@frozen(kw_only=True)
class Row:
    """Something known, with the page that says it."""

    precedent: Precedent
    source: Source | None

    @property
    def origin(self) -> str:
        """The page, its address and the day of the reading."""
        if self.source is None:
            return self.precedent.source
        return f"{self.source.title}, checked {self.source.checked}: {self.source.url}"


def rows(cluster: Cluster) -> Iterator[Row]:
    """Those of the cluster, then those of any machine that it does not replace."""
    own_names = {precedent.name for precedent in cluster.network.precedent}
    yield from (
        Row(precedent=precedent, source=cluster.source_of(precedent.source))
        for precedent in cluster.network.precedent
    )
    yield from (row for row in of_any_machine() if row.precedent.name not in own_names)


@cache
def of_any_machine() -> tuple[Row, ...]:
    """The rows of the table."""
    data = read_toml(TABLE).data
    sources = {row["id"]: Source(**row) for row in data["source"]}
    return tuple(Row(precedent=Precedent(**row), source=sources[row["source"]]) for row in data["precedent"])


def met(cluster: Cluster, use: Use) -> Iterator[Row]:
    """The rows that hold for this use."""
    return (row for row in rows(cluster) if _holds(row.precedent, cluster, use))


def _holds(precedent: Precedent, cluster: Cluster, use: Use) -> bool:
    return (
        precedent.nodes == ("many" if use.nodes > 1 else "one")
        and precedent.fabric in ("", cluster.network.fabric)
        and (precedent.traffic == "any" or use.all_to_all)
        and re.search(precedent.gpu, cluster.hardware.gpu) is not None
        and not (precedent.unasked and any(precedent.unasked in word for word in use.scheduler_words))
        and all(_is_value(name, pattern, use) for name, pattern in precedent.var.items())
        and all(part in use.stack and is_in(use.stack[part], span) for part, span in precedent.stack.items())
    )


def _is_value(name: str, pattern: str, use: Use) -> bool:
    if name in use.unknown or (name not in use.values and not use.is_whole):
        return False
    return re.fullmatch(pattern, use.values.get(name, "")) is not None


def is_in(version: str, span: str) -> bool:
    """Whether `1.22.0-SHS12` is in `1.22`, in `<2` or in `>=1.20,<2`, as far as the span has parts."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return numbers is not None and all(_is_within(_parts(numbers[0]), part) for part in span.split(","))


def _is_within(version: tuple[int, ...], span: str) -> bool:
    match = _RANGE.match(span)
    if match is None:
        return False
    limit = _parts(match[2])
    padded = (*version, *(0,) * len(limit))[: len(limit)]
    signs = {"": padded == limit, "<": padded < limit, "<=": padded <= limit}
    signs |= {">": padded > limit, ">=": padded >= limit}
    return signs[match[1]]


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def text_of(precedent: Precedent, use: Use) -> str:
    """What of the use a row names: `plugin 1.8.1, NCCL_NET=OFI`."""
    parts = [f"{part} {use.stack[part]}" for part in precedent.stack]
    parts += [
        f"{name}={use.values[name]}" if use.values.get(name) else f"no {name}" for name in precedent.var
    ]
    return ", ".join([*parts, *([f"no {precedent.unasked}"] if precedent.unasked else ())])


def problems(plan: Plan) -> Iterator[Problem]:
    """What is known to go wrong with the network of the training."""
    for planned in plan.steps:
        if planned.step.trains and not planned.here:
            use = use_of(plan, planned)
            for row in met(plan.cluster, use):
                if row.precedent.verdict != "good":
                    yield _problem(row, use)


def _problem(row: Row, use: Use) -> Problem:
    precedent = row.precedent
    where = next((f"env.{name}" for name in precedent.var if name in use.values), "resources.nodes")
    return Problem(
        code="known-stack",
        message=f"{precedent.name}: {precedent.effect}",
        where=where,
        notes=(*((f"met with {what}",) if (what := text_of(precedent, use)) else ()), row.origin),
        hint=precedent.cure,
        fatal=precedent.verdict == "refused",
    )


def use_of(plan: Plan, planned: PlannedStep) -> Use:
    """The network of a training as it is planned."""
    environment, cluster = plan.run.environment.use, plan.cluster
    variables = [v for v in planned.around.env if v.how is not How.PREPEND]
    values = {v.name: v.value for v in variables if isinstance(v.value, str)}
    unknown = {v.name for v in variables} - values.keys()
    is_left_to_it = any(environment in var.unless for var in cluster.network.var)
    words = planned.around.ask.get(cluster.scheduler, ())
    experts = EXPERTS.findall(" ".join([*plan.run.texts.values(), repr(plan.run.train.options)]))
    return Use(
        nodes=planned.step.launch.nodes,
        stack=cluster.network.stack,
        values=values,
        unknown=frozenset(unknown),
        is_whole=not planned.around.modules and not is_left_to_it,
        scheduler_words=[word for word in words if isinstance(word, str)],
        all_to_all=any(int(number) > 1 for number in experts),
    )
