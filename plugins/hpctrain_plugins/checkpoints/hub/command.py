"""`hpctrain publish`: the checkpoints of an experiment as revisions of a model on the hub."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpctrain.command import Out
from hpctrain.plugin import ConfigError, HpctrainError
from hpctrain_plugins.checkpoints.cli.source import all_of, require_paths
from hpctrain_plugins.checkpoints.copying import one_thread
from hpctrain_plugins.checkpoints.hub import experiment
from hpctrain_plugins.checkpoints.options import DTYPES, ConvertOptions

if TYPE_CHECKING:
    from hpctrain_plugins.checkpoints.hub.work import Crew, Row, Task

HPCTRAIN_API = 1

FOLDER = click.Path(path_type=Path)


@click.command("publish")
@click.argument("source")
@click.argument("repository", metavar="ORG/EXPERIMENT")
@click.option("-o", "--out", "place", type=FOLDER, help="for conversions and the ledger; else beside SOURCE")
@click.option("--dry-run", is_flag=True, help="show each file that would be uploaded; contact nothing")
@click.option("--upload-neox-only", is_flag=True, help="only the trainer's own files, no conversion")
@click.option("--skip-neox-upload", is_flag=True, help="only the converted models")
@click.option("--upload-delay", default="0", metavar="SECONDS|random", help="before the first upload")
@click.option("--max-retries", type=click.IntRange(min=0), default=20, show_default=True, help="when busy")
@click.option("--eval", "evaluate", is_flag=True, help="lm_eval on each model after its upload")
@click.option("--eval-tasks", default="hellaswag", show_default=True, metavar="A,B", help="what it measures")
@click.option(
    "--dtype", type=click.Choice(tuple(DTYPES)), default="keep", show_default=True, help="of models"
)
@click.option("--tokenizer", type=FOLDER, help="a folder whose tokenizer goes with the models")
@click.option("--config", type=FOLDER, help="the configuration, when checkpoints hold none")
@click.option("--private", is_flag=True, help="make new repositories private")
@click.option("--remove", is_flag=True, help="remove a conversion once it is published")
@click.option("--job", is_flag=True, help="let the cluster's scheduler convert, and upload behind it")
@click.option("--on", metavar="CLUSTER", help="of --job: not this computer's")
@click.option("--account", metavar="NAME", help="of --job: what it is charged to")
@click.pass_obj
def command(out: Out, /, source: str, repository: str, place: Path | None, **settings: Any) -> int:
    """Publish every checkpoint of SOURCE, a folder or a RUN, as revisions global_stepN of ORG/EXPERIMENT.

    The trainer's own files go to ORG/neox-ckpt-EXPERIMENT. A revision that exists is compared and never
    overwritten. A command that was interrupted resumes where its ledger ends.
    """
    from hpctrain_plugins.checkpoints.hub import work
    from hpctrain_plugins.checkpoints.hub.ledger import Ledger

    task = _task(out, source, experiment.repository(repository), place, settings)
    ledger = Ledger(task.place / f"{repository.replace('/', '--')}.jsonl")
    if settings["dry_run"]:
        return _show_rows(out, task, ledger, work.planned(task, ledger))
    if settings["job"]:
        from hpctrain_plugins.checkpoints.hub import as_jobs

        as_jobs.submit(out, source, repository, task, ledger, settings)
        return 0
    with ledger.lock():
        rows = work.publish(task, ledger, _crew(out, settings))
    return _show_rows(out, task, ledger, rows)


def _task(out: Out, source: str, repository: str, place: Path | None, settings: dict[str, Any]) -> Task:
    from hpctrain_plugins.checkpoints.hub.work import Task, delay

    if settings["upload_neox_only"] and settings["skip_neox_upload"]:
        raise ConfigError.of("usage", "--upload-neox-only and --skip-neox-upload leave nothing to upload")
    try:
        seconds = delay(settings["upload_delay"])
    except ValueError:
        raise ConfigError.of(
            "usage", f"{settings['upload_delay']!r} is not a number of seconds", hint="--upload-delay random"
        ) from None
    require_paths(config=settings["config"], tokenizer=settings["tokenizer"])
    folder, names = all_of(source, out.environ)
    return Task(
        checkpoints=experiment.checkpoints(folder, **names),
        place=place or folder.parent / f"{folder.name}-hf",
        model=None if settings["upload_neox_only"] else repository,
        raw=None if settings["skip_neox_upload"] else experiment.raw_repository(repository),
        private=settings["private"],
        delay=max(0.0, seconds),
        remove=settings["remove"],
    )


def _crew(out: Out, settings: dict[str, Any]) -> Crew:
    from hpctrain_plugins.checkpoints.hub import lm_eval
    from hpctrain_plugins.checkpoints.hub.retries import Retries
    from hpctrain_plugins.checkpoints.hub.work import Crew

    one_thread.ask_for()
    from hpctrain_plugins.checkpoints.convert import convert
    from hpctrain_plugins.checkpoints.hub.remote import Remote, client

    options = ConvertOptions(
        dtype=settings["dtype"],
        tokenizer=settings["tokenizer"],
        config=settings["config"],
        verify="roundtrip",
    )
    api = client()
    retries = Retries(settings["max_retries"], out.say)
    return Crew(
        remote=lambda name: Remote(api, name, retries),
        convert=lambda path, folder: convert(path, "hf", folder, options),
        evaluate=lm_eval.judge(out.environ, settings["eval_tasks"]) if settings["evaluate"] else None,
        say=out.say,
        sleep=time.sleep,
    )


def _show_rows(out: Out, task: Task, ledger: Any, rows: list[Row]) -> int:
    """One table, then every problem; the exit code is that of the first."""
    from hpctrain.command import Column, Table

    problems = [p for row in rows for p in row.problems]
    code = next((row.code for row in rows if row.code), 0)
    if out.flags.json:
        from hpctrain.command import problem_json

        out.document(
            "publish",
            repository=task.model,
            raw=task.raw,
            ledger=str(ledger.path),
            rows=[_json(row) for row in rows],
            problems=[problem_json(p) for p in problems],
        )
        return code
    table = Table(Column("REVISION", style="name"), Column("MODEL"), Column("RAW"), Column("EVAL", drop=1))
    for row in rows:
        table.row(f"global_step{row.step}", row.model, row.raw, row.eval)
    out.lines(table.lines(out.term))
    out.lines(_leaving(rows))
    out.say(f"{ledger.path}   what was published")
    return out.problems(_Several(*problems)) and code if problems else 0


def _json(row: Row) -> dict[str, Any]:
    columns = {"step": row.step, "model": row.model, "raw": row.raw, "eval": row.eval}
    return {**columns, "files": row.leaving} if row.leaving else columns


def _leaving(rows: list[Row]) -> list[str]:
    """What would be uploaded where, file by file; revisions with the same names share their list."""
    from hpctrain.command import size_text

    revisions: dict[tuple[str, tuple[str, ...]], list[tuple[int, int]]] = {}
    for row in rows:
        for repository, files in row.leaving.items():
            group = revisions.setdefault((repository, tuple(files)), [])
            group.append((row.step, sum(files.values())))
    lines = []
    for (repository, names), group in revisions.items():
        steps = f"global_step{group[0][0]}" + (f" to {group[-1][0]}" if len(group) > 1 else "")
        total = size_text(sum(size for _, size in group))
        lines += [
            "",
            f"would be uploaded to {repository}@{steps}, {total} in all:",
            *(f"  {n}" for n in names),
        ]
    return lines


class _Several(HpctrainError):
    """Problems of several checkpoints, told together."""
