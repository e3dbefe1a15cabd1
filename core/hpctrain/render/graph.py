"""graph.json: what it takes to carry a rendered run out, without its plugins or its plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpctrain.errors import IntegrityError
from hpctrain.model.frozen import frozen
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.step import After, When
from hpctrain.model.words import Cmd, Join, Loc, Raw, Var, Word
from hpctrain.plan.encode import encode
from hpctrain.versions import RECORD


@frozen(kw_only=True)
class Node:
    """One step as the executor sees it; `submit` is the scheduler's command, None for a step here."""

    name: str
    here: bool
    waits: bool = False
    after: tuple[After, ...] = ()
    makes: Loc | None = None
    checked: bool = False
    """What it makes is compared with its manifest before a later step uses it again."""
    origin: str = ""
    """Where its asset comes from when it is not here yet: hub, url, git."""
    submit: Cmd | None = None
    secrets: tuple[str, ...] = ()
    """The tokens its own variables read; only they are placed for it."""


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
    nodes: tuple[Node, ...]
    binding: Binding


def nodes_text(plan: Plan, nodes: Iterable[Node], binding: Binding) -> str:
    """The text of graph.json."""
    said = {
        "v": RECORD,
        "name": plan.run.name,
        "cluster": plan.cluster.name,
        "scheduler": plan.cluster.scheduler,
        "digest": plan.digest,
        "poll_seconds": plan.cluster.policy.poll_seconds,
        "account": binding.account,
        "secrets": list(plan.run.secrets),
        "submit_env": list(plan.cluster.policy.submit_env),
        "roots": encode(binding.roots),
        "user": binding.user,
        "python": binding.python,
        "nodes": [_said(node) for node in nodes],
    }
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def read(path: Path) -> Graph:
    """The graph of a run directory; IntegrityError when it is not one of ours, or newer."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["v"] > RECORD:
            raise ValueError(f"version {said['v']} is newer than this hpctrain reads")  # noqa: TRY301
        return _graph(said)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError.of(
            "graph", f"{path} cannot be read: {error}", hint="pip install --upgrade hpctrain"
        ) from error


def _said(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "here": node.here,
        "waits": node.waits,
        "after": [[a.step, a.when.value] for a in node.after],
        "makes": encode(node.makes),
        "submit": encode(node.submit.argv) if node.submit else None,
        "secrets": list(node.secrets),
        **({"checked": True} if node.checked else {}),
        **({"origin": node.origin} if node.origin else {}),
    }


def _graph(said: Mapping[str, Any]) -> Graph:
    roots = {role: word(value) for role, value in said["roots"].items()}
    return Graph(
        name=said["name"],
        cluster=said["cluster"],
        scheduler=said["scheduler"],
        digest=said["digest"],
        poll_seconds=said["poll_seconds"],
        account=said["account"],
        secrets=tuple(said["secrets"]),
        submit_env=tuple(said["submit_env"]),
        nodes=tuple(map(_node, said["nodes"])),
        binding=Binding(roots=roots, user=said["user"], account=said["account"], python=said["python"]),
    )


def _node(said: Mapping[str, Any]) -> Node:
    makes = word(said["makes"]) if said["makes"] else None
    assert makes is None or isinstance(makes, Loc)
    return Node(
        name=said["name"],
        here=said["here"],
        waits=said["waits"],
        after=tuple(After(step, When(when)) for step, when in said["after"]),
        makes=makes,
        checked=said.get("checked", False),
        origin=said.get("origin", ""),
        submit=Cmd(tuple(map(word, said["submit"]))) if said["submit"] else None,
        secrets=tuple(said.get("secrets", ())),
    )


def word(said: Any) -> Word:
    """A word from its JSON form (`hpctrain.plan.encode`)."""
    if isinstance(said, str):
        return said
    ((kind, value),) = said.items()
    if kind == "join":
        return Join(*map(word, value))
    if kind == "loc":
        return Loc(*value)
    if kind in ("var", "raw"):
        return Var(value) if kind == "var" else Raw(value)
    raise ValueError(f"no word is called {kind!r}")
