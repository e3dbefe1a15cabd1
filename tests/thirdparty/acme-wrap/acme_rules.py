"""Acme's rules for all of its users: one account, and its own environment wherever a run asks for a venv."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import EnvVar, How, Layer, Problem, RunSpec, Step, Var, hookimpl, template

HPCTRAIN_API = 1
ACCOUNT = "acme-shared"


@hookimpl
def check_run(run: RunSpec) -> Iterator[Problem]:
    """The site file names the account; whoever names another is told."""
    if run.resources.account != ACCOUNT:
        yield Problem(
            code="acme-account",
            message=f"Acme's jobs are charged to {ACCOUNT}, not to {run.resources.account}",
            where="resources.account",
            hint=f'account = "{ACCOUNT}"',
        )


@hookimpl
def build_env(run: RunSpec) -> tuple[Step, ...] | None:
    """Nothing is built in place of a venv; of other technologies this says nothing."""
    return () if run.environment.use == "venv" else None


@hookimpl
def enter_env(run: RunSpec) -> Layer | None:
    """The environment that Acme keeps for everybody; it names itself in what a run sees."""
    if run.environment.use != "venv":
        return None
    return Layer(
        env=(
            EnvVar(name="PATH", value=template("${ACME_ROOT}/bin"), how=How.PREPEND, why="Acme's programs"),
            EnvVar(name="ACME_ENV", value=Var("ACME_ROOT"), why="tells a run's log which environment it had"),
        )
    )
