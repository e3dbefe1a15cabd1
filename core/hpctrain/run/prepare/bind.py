"""Where the storage roles lie for this user: path templates of the facts become words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping

from hpctrain.errors import Problem, raise_fatal
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding
from hpctrain.model.run import RunSpec
from hpctrain.model.words import Join, Var, Word
from hpctrain.run.this_computer import is_here

_PART = re.compile(r"\{(?P<field>user|account|project|uid|home)\}|\$\{(?P<variable>[A-Za-z_]\w*)\}", re.ASCII)

_NEVER = frozenset(":$<>")
"""No root holds these: search paths are cut at a colon, and the others are of what nobody filled in."""

_LATE = {
    "user": "USER",
    "account": "HPC_ACCOUNT",
    "project": "HPC_PROJECT",
    "uid": "UID",
    "home": "HOME",
}
"""The shell variable that stands for a field whose value is not known here."""


def bind(
    cluster: Cluster,
    run: RunSpec,
    environ: Mapping[str, str],
    settings_roles: Mapping[str, str] | None = None,
    *,
    roles: Collection[str] | None = None,
    on_cluster: bool | None = None,
) -> Binding:
    """Bind the roles of `cluster`; `settings_roles` are the user's own templates, which win.

    On the cluster every root is an absolute path, except that a node's own storage may name a
    variable that only a job has. Elsewhere what depends on the user stays a variable. With `roles`
    only those are bound: what a run does not use cannot be wrong.
    """
    account = run.resources.account
    return bound(cluster, account, environ, settings_roles, roles=roles, on_cluster=on_cluster)


def bound(
    cluster: Cluster,
    account: str,
    environ: Mapping[str, str],
    settings_roles: Mapping[str, str] | None = None,
    *,
    roles: Collection[str] | None = None,
    on_cluster: bool | None = None,
) -> Binding:
    """The same for somebody who has an account and no run."""
    is_on_cluster = is_here(cluster) if on_cluster is None else on_cluster
    user_templates = dict(settings_roles or {})
    charged = {"account": account, "project": cluster.project_of(account)}
    field_values = _field_values(charged, environ if is_on_cluster else {})
    problems: list[Problem] = []
    roots: dict[str, Word] = {}
    for role, template in {**{r: s.path for r, s in cluster.storage.items()}, **user_templates}.items():
        if roles is not None and role not in roles:
            continue
        facts = cluster.storage.get(role)
        late = not is_on_cluster or (facts is not None and facts.node_local and role not in user_templates)
        parts = tuple(_parts(template, field_values, {} if late else environ))
        roots[role] = _joined(parts)
        problems += _wrong(role, template, parts, cluster.name, late)
    raise_fatal(problems)
    python = sys.executable if is_on_cluster else "python3"
    return Binding(
        roots=roots,
        user=environ.get("USER", ""),
        account=account,
        project=charged["project"],
        python=python,
    )


def _field_values(charged: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The fields whose values are known: all of them on the cluster, account and project anywhere."""
    values = dict(charged)
    if environ:
        values |= {
            "user": environ.get("USER") or environ.get("LOGNAME", ""),
            "home": environ.get("HOME", ""),
            "uid": str(os.getuid()),
        }
    return {field: value for field, value in values.items() if value}


def _parts(template: str, field_values: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str | Var]:
    if template == "~" or template.startswith("~/"):
        template = "{home}" + template[1:]
    end = 0
    for match in _PART.finditer(template):
        yield template[end : match.start()]
        end = match.end()
        field, variable = match["field"], match["variable"]
        value = field_values.get(field) if field else environ.get(variable)
        yield value or Var(_LATE[field] if field else variable)
    yield template[end:]


def _joined(parts: tuple[str | Var, ...]) -> Word:
    """The fewest words: neighbouring text is one word, and a path without variables is text."""
    words: list[Word] = []
    for part in parts:
        last = words[-1] if words else None
        if isinstance(part, str) and isinstance(last, str):
            words[-1] = last + part
        elif part:
            words.append(part)
    return words[0] if len(words) == 1 else Join(*words)


def _wrong(
    role: str, template: str, parts: tuple[str | Var, ...], cluster: str, late: bool
) -> Iterator[Problem]:
    where = f"cluster.{cluster}.{role}"
    left = () if late else tuple(part.name for part in parts if isinstance(part, Var))
    for name in left:
        if name in ("HPC_ACCOUNT", "HPC_PROJECT"):
            yield Problem(
                code="account",
                message=f"no account given, and {role} of {cluster} lies in {template}",
                where="resources.account",
                hint="hpctrain submit RUN_FILE --account ACCOUNT      (or `account` in settings)",
            )
        else:
            yield Problem(
                code="role",
                message=f"{role} of {cluster} lies in {template}, but ${name} is not set here",
                where=where,
                hint=f'[cluster.{cluster}] {role} = "/path"      (in settings)',
            )
    if not template.startswith(("/", "~", "{home}", "${")) or _hostile(parts):
        yield Problem(
            code="role",
            message=f"{role} of {cluster} must be a plain absolute path, not {template!r}",
            where=where,
            hint=f'[cluster.{cluster}] {role} = "/path"      (in settings)',
        )


def _hostile(parts: tuple[str | Var, ...]) -> bool:
    text = "".join(part for part in parts if isinstance(part, str))
    return ".." in text.split("/") or bool(_NEVER.intersection(text)) or not text.isprintable()
