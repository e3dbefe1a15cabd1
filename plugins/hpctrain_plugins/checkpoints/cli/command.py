"""`hpctrain convert`: a checkpoint in another format, verified, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from hpctrain.command import Out
from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.cli import spellings
from hpctrain_plugins.checkpoints.cli.source import Source, located, require_paths
from hpctrain_plugins.checkpoints.copying import one_thread
from hpctrain_plugins.checkpoints.options import (
    DTYPES,
    GQA_LAYOUTS,
    LAYER_KEYS,
    LAYOUTS,
    NAMINGS,
    SHARD_BYTES,
    STACKED,
    VERIFY,
    ConvertOptions,
)

HPCTRAIN_API = 1

FOLDER = click.Path(path_type=Path)
AT_LEAST_ONE = click.IntRange(min=1)


class Convert(click.Command):
    """Reads the option names of other converters as ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Translate first, so that a wrong value is told under the name that the help shows."""
        return super().parse_args(ctx, spellings.ours(args))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The formats that are installed, and which of them can be written."""
        from hpctrain.toolbox import installed_names
        from hpctrain_plugins.checkpoints.export.planned import READ_ONLY

        names = installed_names("checkpoints")
        notes = {
            "nanotron": " (Llama models)",
            "megatron": " (torch_dist)",
            "deepspeed-zero": " (of ZeRO: --ranks)",
            "deepspeed-universal": " (of ZeRO)",
        }
        written = (f"{name}{notes.get(name, '')}" for name in names if name not in READ_ONLY)
        with formatter.section("Formats"):
            formatter.write_dl([("read", ", ".join(names)), ("written", ", ".join(written))])


@click.command("convert", cls=Convert)
@click.argument("source")
@click.option("--to", "target", default="hf", show_default=True, metavar="FORMAT", help="the format to write")
@click.option("-o", "--out", "folder", type=FOLDER, help="a new folder; has a default for a RUN and the hub")
@click.option("--dry-run", is_flag=True, help="show every tensor that would be written; write nothing")
@click.option("--from", "source_format", metavar="FORMAT", help="where several formats fit the folder")
@click.option(
    "--dtype", type=click.Choice(tuple(DTYPES)), default="keep", show_default=True, help="of the weights"
)
@click.option(
    "--verify",
    type=click.Choice(VERIFY),
    default="roundtrip",
    show_default=True,
    help="read back; logits: also compute with both",
)
@click.option("--tp", type=AT_LEAST_ONE, default=1, show_default=True, help="tensor-parallel ranks to write")
@click.option("--pp", type=AT_LEAST_ONE, default=1, show_default=True, help="pipeline stages to write")
@click.option("--iteration", type=click.IntRange(min=0), help="the number of the step to write")
@click.option("--tag", default="", help="the step folder to read, when it is not the latest")
@click.option("--base", type=FOLDER, help="the model that an adapter was trained on")
@click.option("--config", type=FOLDER, help="the configuration, when the checkpoint holds none")
@click.option("--tokenizer", type=FOLDER, help="a folder whose tokenizer goes with the model")
@click.option("--revision", default="", help="of a model in the hub's cache: branch, tag or commit")
@click.option("--naming", type=click.Choice(NAMINGS), default="new", help="neox: names of tensors")
@click.option("--layout", type=click.Choice(LAYOUTS), default="pipelined", help="neox: kind of files")
@click.option("--layer-keys", type=click.Choice(LAYER_KEYS), default=STACKED, help="megatron: form of keys")
@click.option("--neox-gqa-layout", type=click.Choice(GQA_LAYOUTS), help="neox: order of attention rows")
@click.option("--rope-interleaved/--no-rope-interleaved", default=None, help="nanotron: order of rotary rows")
@click.option("--ranks", type=AT_LEAST_ONE, help="ZeRO with its optimizer, to go on with on so many ranks")
@click.option("--optimizer", is_flag=True, help="megatron: as it was, the optimizer by names of weights")
@click.option("--masters", is_flag=True, help="read the optimizer's fp32 weights")
@click.option("--shard-bytes", type=AT_LEAST_ONE, default=SHARD_BYTES, help="largest file of hf")
@click.option("--threads", type=AT_LEAST_ONE, help="that work; else 2, and 1 where bytes only move in memory")
@click.option("--job", is_flag=True, help="let the cluster's scheduler do it")
@click.option(
    "-N", "--nodes", type=AT_LEAST_ONE, default=1, help="of --job: each writes a share of the files"
)
@click.option("--shared", is_flag=True, hidden=True, help="one of the processes of --nodes")
@click.option("--on", metavar="CLUSTER", help="of --job and -o: not this computer's")
@click.option("--account", metavar="NAME", help="of --job: what it is charged to")
@click.pass_obj
def command(
    out: Out,
    /,
    source: str,
    target: str,
    folder: Path | None,
    revision: str,
    job: bool,
    nodes: int,
    shared: bool,
    on: str | None,
    account: str | None,
    **options: Any,
) -> int:
    """Convert SOURCE, a folder, or the newest complete checkpoint of a RUN, to another format.

    Nothing of a checkpoint is executed, memory stays small, and what was written is read again.
    """
    if options["ranks"] is not None and target == "hf":
        target = "deepspeed-zero"
    checkpoint = located(source, revision, out.environ, out.say)
    user_options = {name: value for name, value in options.items() if value is not None}
    require_paths(
        base=user_options.get("base"),
        config=user_options.get("config"),
        tokenizer=user_options.get("tokenizer"),
    )
    convert_options = ConvertOptions(**{"source_format": checkpoint.format, **user_options})
    place = _place(folder, checkpoint, target, convert_options, on)
    if nodes > 1 and not job:
        raise ConfigError.of("usage", "--nodes is of a job", where="--nodes", hint=f"--job --nodes {nodes}")
    if job and not convert_options.dry_run:
        from hpctrain_plugins.checkpoints.cli import as_job
        from hpctrain_plugins.checkpoints.copying.publishing import check_free

        check_free(place)
        if nodes > 1:
            _check_nodes(checkpoint, target, place, convert_options, nodes)
        as_job.submit(
            out,
            [as_job.conversion(checkpoint.path, target, place, user_options, nodes=nodes)],
            as_job.Where(on=on, account=account),
        )
        return 0
    return _carried_out(out, checkpoint, target, place, convert_options, shared=shared)


def _check_nodes(checkpoint: Source, target: str, place: Path, options: ConvertOptions, nodes: int) -> None:
    """Refuse more nodes than files before they are asked for: headers alone are read."""
    one_thread.ask_for()
    from hpctrain_plugins.checkpoints.convert import convert
    from hpctrain_plugins.checkpoints.crew import Crew

    planned = attrs.evolve(options, dry_run=True)
    convert(checkpoint.path, target, place, planned, crew=Crew(count=nodes))


def _place(
    folder: Path | None, checkpoint: Source, target: str, options: ConvertOptions, on: str | None
) -> Path:
    """Where to write; without a word of the user as the run's own step `export` does it.

    A model of the hub goes where the cluster's trainers look for checkpoints.
    """
    if folder is not None:
        return folder
    if checkpoint.exports is not None:
        return checkpoint.exports / target / checkpoint.path.name
    if options.dry_run:
        return Path(f"{checkpoint.path.name}-{target}")
    if checkpoint.model:
        from hpctrain_plugins.checkpoints.cli.as_job import Where, among_checkpoints

        return among_checkpoints(checkpoint.model.rpartition("/")[2], Where(on=on))
    hint = f"-o {checkpoint.path.resolve().name or 'model'}-{target}"
    raise ConfigError.of("usage", "a new folder is needed for what is written", hint=hint)


def _carried_out(
    out: Out, checkpoint: Source, target: str, place: Path, options: ConvertOptions, *, shared: bool
) -> int:
    one_thread.ask_for()
    from hpctrain_plugins.checkpoints import crew
    from hpctrain_plugins.checkpoints.cli import output
    from hpctrain_plugins.checkpoints.convert import convert

    if options.dry_run:
        report = convert(checkpoint.path, target, place, options)
        show = output.mapping
    else:
        with output.converting(out) as report_progress:
            ours = crew.of_job(out.environ) if shared else crew.SINGLE
            report = convert(checkpoint.path, target, place, options, report_progress, ours)
        show = output.done
        if not ours.leads:  # who knows of one share alone
            return 0
    if out.flags.json:
        out.document("convert", **report.to_json())
    else:
        show(out, report)
    return 0
