"""`[environment] stack`: the packages that a trainer was seen to work with, below the run file's own."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hpctrain.model.run import Package, RunSpec, Stack
from hpctrain.runfile.faults import Fault, Mismatch, shown_as


def with_stack(run: RunSpec, stacks: Mapping[str, Stack], *, builds: bool) -> RunSpec:
    """The run with the stack's packages behind its own, which replace those of the same name.

    `builds`: the run file says nothing of `compile`, so what the stack builds is built.
    """
    requested = run.environment
    stack = stacks.get(requested.stack)
    if stack is None:
        raise Mismatch([_unknown(run, stacks)])
    user_names = {same_name(package.name) for package in (*requested.packages, *requested.compile)}
    added = [p for p in map(Package.parse, stack.packages) if same_name(p.name) not in user_names]
    built = tuple(map(Package.parse, stack.compile)) if builds else requested.compile
    environment = attrs.evolve(requested, packages=(*requested.packages, *added), compile=built)
    return attrs.evolve(run, environment=environment)


def same_name(name: str) -> str:
    """Names of packages are compared without case, and `_` and `.` are `-`."""
    return name.lower().replace("_", "-").replace(".", "-")


def _unknown(run: RunSpec, stacks: Mapping[str, Stack]) -> Fault:
    newest = max(stacks, default="")
    trainer = f"the trainer {run.train.use}" if run.train.use else "a run without a trainer"
    listed = ", ".join(sorted(stacks)) or "none"
    return Fault(
        code="unknown-stack",
        complaint=f"is {shown_as(run.environment.stack)}; {trainer} has {listed}",
        value=f'"{newest}"' if newest else "",
        path=("environment", "stack"),
    )
