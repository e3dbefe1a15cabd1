"""`hpctrain check`: everything that is wrong with a run file, at once."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import many, run_options
from hpctrain.errors import ConfigError, HpctrainError, Problem, fatal
from hpctrain.session import Session


@click.command("check")
@run_options
@click.argument("more", nargs=-1, type=click.Path(path_type=Path))
@click.option("--trainer", metavar="NAME", help="the files are this trainer's own, without a run")
@click.option("--gpus", type=click.IntRange(1), help="with --trainer: for this number of GPUs")
@click.option("--nodes", type=click.IntRange(1), help="with --trainer: on this number of nodes")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    more: tuple[Path, ...],
    trainer: str | None,
    gpus: int | None,
    nodes: int | None,
) -> int:
    """Report everything that is wrong with a run file; exit 0 when it is valid (for at least one --on)."""
    if trainer is not None:
        from hpctrain.cli.shared.trainer_files import check

        return check(out, trainer, [p for p in (run_file, *more) if p], gpus or nodes or 1, nodes or 0)
    if more or gpus or nodes:
        raise ConfigError.of("usage", "several files, --gpus and --nodes go with --trainer")
    problems_by_cluster: dict[str, list[Problem]] = {}
    for on_name, session in many(run_file, on, sets, account):
        name = on_name if isinstance(session, HpctrainError) else session.cluster.name
        problems_by_cluster[name] = _problems(out, session)
    good = [name for name, problems in problems_by_cluster.items() if not fatal(problems)]
    if not good:
        raise ConfigError(*dict.fromkeys(p for problems in problems_by_cluster.values() for p in problems))
    if out.flags.json:
        from hpctrain.ui.problem import problem_json

        out.document(
            "check",
            clusters={
                name: [problem_json(p) for p in out.completed(problems)]
                for name, problems in problems_by_cluster.items()
            },
        )
        return 0
    for name, problems in problems_by_cluster.items():
        out.warn(problems)
        out.lines([f"{name}: {'ok' if name in good else problems[0].message}"])
    return 0


def _problems(out: Out, session: Session | HpctrainError) -> list[Problem]:
    from hpctrain.cli.shared.data_checks import data_problems

    if isinstance(session, HpctrainError):
        return list(session.problems)
    try:
        return [*session.plan().problems, *data_problems(out, session)]
    except HpctrainError as error:
        return list(error.problems)
