"""`hpctrain eject`: plain bash and scheduler scripts that run without hpctrain."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.data_checks import judge_data
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.plan import chain
from hpctrain.run.this_computer import is_here
from hpctrain.session import Session


@click.command("eject")
@run_options
@click.option("-o", "--out", "folder", type=click.Path(path_type=Path), help="an empty or new folder")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    folder: Path | None,
) -> int:
    """Write the run's scripts into a folder: the same files that `submit` would use, with a run.sh."""
    session = judge_data(out, open_session(run_file, on, sets, account))
    target = (folder or Path(f"{session.run.name}-{session.cluster.name}")).absolute()
    prepared = session.prepared()
    prepared.eject(target)
    plan = prepared.plan
    if out.flags.json:
        out.document("eject", path=str(target), digest=plan.digest, steps=[s.name for s in plan.steps])
        return 0
    out.warn(plan.problems)
    for path in _left(session):
        out.say(f"the scripts read {path}: copy it to the same place on {session.cluster.name}")
    for name, places in prepared.token_places().items():
        out.say(
            f"run.sh reads the token {name} when it starts, from the first of: {', '.join(map(str, places))}"
        )
    links = chain.of(plan)
    if links is not None and links.attempts > 1 and not links.requeue:
        out.say(f"run.sh submits the first of {links.attempts} jobs; hpctrain submit hands over all of them")
    out.lines([str(target / "run.sh")])
    out.next(f"bash {target / 'run.sh'}")
    return 0


def _left(session: Session) -> list[Path]:
    """What the run declares by path and lies here alone, when here is not the cluster."""
    if is_here(session.cluster):
        return []
    files = session.loaded.files.items()
    return [place for declared, place in files if declared not in session.run.texts]
