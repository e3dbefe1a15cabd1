"""`hpctrain stage`: the assets of a run and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.cli.shared.part import part_options, prepare
from hpctrain.plan.goal import STAGE


@click.command("stage")
@run_options
@part_options
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    locked: bool,
    wait: bool,
) -> int:
    """Bring the models, datasets and code of a run to the cluster. What is there already stays.

    An asset that is made inside the environment needs it: then its steps are done before.
    """
    session = open_session(run_file, on, sets, account, goal=STAGE)
    return prepare(out, session, locked=locked, wait=wait)
