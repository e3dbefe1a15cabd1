"""graph.json: what it takes to carry a rendered run out, without its plugins or its plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from hpctrain.errors import IntegrityError
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.step import After
from hpctrain.model.words import Cmd, Loc, Var, Word, words_in
from hpctrain.plan.decode import decode
from hpctrain.plan.encode import encode
from hpctrain.render import shell
from hpctrain.versions import RECORD
from hpctrain_job.files import documents


@frozen(kw_only=True)
class Links:
    """The jobs of a step that several do, one after the other."""

    attempts: int
    """As many as were planned."""
    most: int
    """The most that are in the queue at once."""
    stop: Loc | None = None
    """The beginning of the path at which a file stops them, where others of the project may write; the name
    of the run's folder follows."""


AVOID = Var("HPC_AVOID")
"""In a scheduler's command: the nodes that its job stays away from."""


def avoids(submit: Cmd) -> bool:
    """Whether the scheduler's command takes them."""
    return any(AVOID in words_in(word) for word in submit.argv)


@frozen(kw_only=True)
class Avoid:
    """What keeps a job away from nodes that failed."""

    place: Loc
    """The beginning of the path at which users remember them; the number of the user follows."""
    most: int
    """So many may be left out."""
    shared: bool = False
    """Whether others of the project read what is found."""


@frozen(kw_only=True)
class Node:
    """One step as the executor sees it; `submit` is the scheduler's command, None for a step here."""

    name: str
    here: bool
    waits: bool = False
    after: tuple[After, ...] = ()
    makes: Loc | None = None
    submit: Cmd | None = None
    secrets: tuple[str, ...] = ()
    """The tokens its own variables read; only they are placed for it."""
    checked: bool = False
    """What it makes is compared with its manifest before a later step uses it again."""
    origin: str = ""
    """Where its asset comes from when it is not here yet: hub, url, git."""
    links: Links | None = None
    """Where several jobs do it."""
    avoid: Avoid | None = None
    """Where its scheduler's command takes HPC_AVOID."""


@frozen(kw_only=True)
class Graph:
    """A rendered run: its steps, who speaks to the scheduler, and where the roles lie."""

    name: str
    cluster: str
    scheduler: str
    digest: str
    poll_seconds: int
    account: str
    secrets: tuple[str, ...]
    submit_env: tuple[str, ...]
    roots: Mapping[str, Word]
    user: str
    python: str
    nodes: tuple[Node, ...]
    owners: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Role -> the users besides this one whose artifacts are used."""

    @property
    def binding(self) -> Binding:
        """What the run was rendered with."""
        return Binding(roots=self.roots, user=self.user, account=self.account, python=self.python)


def nodes_text(plan: Plan, nodes: Iterable[Node], binding: Binding) -> str:
    """The text of graph.json."""
    graph = Graph(
        name=plan.run.name,
        cluster=plan.cluster.name,
        scheduler=plan.cluster.scheduler,
        digest=plan.digest,
        poll_seconds=plan.cluster.policy.poll_seconds,
        account=binding.account,
        secrets=plan.run.secrets,
        submit_env=plan.cluster.exported,
        roots=binding.roots,
        user=binding.user,
        python=binding.python,
        nodes=tuple(nodes),
        owners=_owners(plan, binding),
    )
    document = {"v": RECORD, **encode(graph), "nodes": [_row(node) for node in graph.nodes]}
    if not graph.owners:
        del document["owners"]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _owners(plan: Plan, binding: Binding) -> dict[str, tuple[str, ...]]:
    """Whose files are used, by the roles that they lie in."""
    owners = {role: shell.owners(plan.cluster, role, binding) for role in plan.cluster.storage}
    return {role: names for role, names in owners.items() if names}


def _row(node: Node) -> dict[str, Any]:
    row = {**encode(node), "after": [[after.step, after.when.value] for after in node.after]}
    return {
        key: value
        for key, value in row.items()
        if value or key not in ("checked", "origin", "links", "avoid")
    }


def read(path: Path) -> Graph:
    """The graph of a run directory; IntegrityError when it is not one of ours, or newer."""
    try:
        data = documents.read(path)
        if data["v"] > RECORD:
            raise ValueError(f"version {data['v']} is newer than this hpctrain reads")  # noqa: TRY301
        return decode(data, Graph)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise IntegrityError.of(
            "graph", f"{path} cannot be read: {error}", hint="pip install --upgrade hpctrain"
        ) from error
