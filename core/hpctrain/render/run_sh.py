"""run.sh: the whole run as one script that needs no hpctrain, only bash and the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.model.plan import Binding, Plan
from hpctrain.model.step import When
from hpctrain.model.words import Cmd, Secret, Var, words_in
from hpctrain.plan import tokens
from hpctrain.render import shell

if TYPE_CHECKING:
    from hpctrain.render.graph import Node

HEAD = """\
set -euo pipefail
umask 077
# -P: a job starts in the real folder, and its tokens and containers are named by that
CDPATH='' cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
export HPC_RUN=$PWD HPC_TAG
mkdir -p logs
. code/identity.sh
hpc_identify || exit 7

here() {  # a step of this machine
  echo "$1"
  bash "steps/$1/job.sh" >>"logs/$1.log" 2>&1 || { tail -n 20 "logs/$1.log" >&2; exit 4; }
}

tag() {  # names a step's job before the scheduler is asked; the record of an earlier one is not its
  [[ -e steps/$1/finished ]] || rm -f "steps/$1/exit"
  HPC_TAG=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
}

wait_for() {  # a job's own exit record, however long it queues
  echo "waiting for $1"
  until [[ -e steps/$1/exit || -e steps/$1/finished ]]; do sleep "${HPC_POLL:-30}"; done
  [[ -e steps/$1/finished ]] || { echo "step $1 ended badly: logs/$1.log" >&2; exit 8; }
}
"""


def run_sh(plan: Plan, nodes: Sequence[Node], binding: Binding, settings: Mapping[str, object]) -> str:
    """The script: steps here one by one, jobs chained by their dependencies.

    `settings` are the user's table of secrets: where a token is kept, never what it is.
    """
    title = shell.comment(f"{plan.run.name} on {plan.cluster.name}, plan {plan.digest[:8]}")
    lines = ["#!/bin/bash", f"# {title}: bash run.sh", HEAD, *_token_search(nodes, settings)]
    jobs = [node.name for node in nodes if not node.here]
    for node in nodes:
        lines += _tokens(node, plan, binding)
        lines += _local_step(node, jobs) if node.submit is None else _job(node, node.submit, jobs, binding)
    if jobs and nodes[-1].submit is not None:
        # one that fails lets those behind it go without a word: nobody would write their record
        waits = "; ".join(f"wait_for {shell.quoted(name)}" for name in _chain(nodes, jobs))
        lines += [f"[[ -z ${{HPC_WAIT:-}} ]] || {{ {waits}; }}"]
    return "\n".join(lines) + "\n"


def _chain(nodes: Sequence[Node], jobs: Iterable[str]) -> list[str]:
    """The jobs that must end well for the last one to start, and the last one."""
    needed = {nodes[-1].name}
    for node in reversed(nodes):
        if node.name in needed:
            needed |= {edge.step for edge in node.after if edge.when is When.OK}
    return [node.name for node in nodes if node.name in needed and node.name in jobs]


def _token_search(nodes: Sequence[Node], settings: Mapping[str, object]) -> list[str]:
    """Every token of the run, looked for before anything is begun."""
    names = dict.fromkeys(name for node in nodes for name in node.secrets)
    if not names:
        return []
    lines = [Path(__file__).with_name("tokens.sh").read_text(encoding="utf-8")]
    for name in names:
        places = tokens.places(name, settings)
        listed = f"none of: {', '.join(map(str, places))}"
        tests = " || ".join(map(_looked_for, places))
        lines.append(
            f"if {tests}; then take {shell.quoted(name)}; "
            f"else lack {shell.quoted(name)} {shell.quoted(listed)}; fi"
        )
    return [*lines, "[[ -z $lacking ]] || exit 2"]


def _looked_for(place: tokens.TokenPlace) -> str:
    if isinstance(place, tokens.InVariable):
        return f"in_variable {shell.name(place.name)}"
    if isinstance(place, tokens.InNetrc):
        return f"in_netrc {shell.quoted(place.host)}"
    if place.path.startswith("~/"):
        return f'in_file "${{HOME:-}}" {shell.quoted(place.path[1:])}'
    if not place.base:
        return f"in_file {shell.quoted(place.path)} ''"
    base = f"${{{shell.name(place.base)}:-{place.otherwise}}}"
    return f'in_file "{base}" {shell.quoted(place.path)}'


def _tokens(node: Node, plan: Plan, binding: Binding) -> list[str]:
    """The step's tokens, each in a private file."""
    places = {name: tokens.place_in_job(plan.run.name, node.name, Secret(name)) for name in node.secrets}
    return [f"token {shell.quoted(name)} {shell.word(place, binding)}" for name, place in places.items()]


def _local_step(node: Node, jobs: Iterable[str]) -> list[str]:
    behind = [a.step for a in node.after if a.step in jobs]
    return [*(f"wait_for {shell.quoted(name)}" for name in behind), f"here {shell.quoted(node.name)}"]


def _job(node: Node, submit: Cmd, jobs: Iterable[str], binding: Binding) -> list[str]:
    edges = [(a.when.value, a.step) for a in node.after if a.step in jobs]
    after = ",".join(f"after{when}:${{{_variable(step)}}}" for when, step in edges)
    unknown = {Var("HPC_AVOID"), *(() if edges else (Var("HPC_AFTER"),))}
    argv = tuple(w for w in submit.argv if unknown.isdisjoint(words_in(w)))
    name = _variable(node.name)
    return [
        f"tag {shell.quoted(node.name)}",
        *([f'HPC_AFTER="{after}"'] if edges else []),
        f"{name}=$({shell.words(argv, binding)})",
        f"{name}=${{{name}%%;*}}",
        *(["placed=()"] if node.secrets else []),
        f'echo {shell.quoted(node.name)} "job ${name}"',
    ]


def _variable(step: str) -> str:
    """A shell variable for a step's job id; step names may hold what variables may not."""
    return "job_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in step)
