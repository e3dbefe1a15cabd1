"""`command`: any training program, yours or somebody's, in the same environment.

Words of `argv` may hold `PLACES`; other braces stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import attrs

from hpctrain.plugin import (
    Cluster,
    Cmd,
    Configs,
    EnvVar,
    How,
    Join,
    Layer,
    Layout,
    Numbers,
    Pattern,
    Plan,
    Problem,
    Ranks,
    RunSpec,
    Train,
    Var,
    Word,
    hookimpl,
)
from hpctrain_plugins.trainers import caches, ranks, starts, tracker

HPCTRAIN_API = 1

_WORD = r"(?<!\$)\{([A-Za-z][\w.-]*)\}"
"""A word in braces alone: neither JSON, nor a shell's variable, nor a program of awk."""
PLACES = {
    "assets.NAME": "where the asset of this name lies",
    "run": "the run's directory",
    "checkpoints": "the run's folder for checkpoints",
    "start": "where this attempt starts: `[checkpoint] start`, later the run's newest whole checkpoint",
    "nodes": "how many nodes the job has",
    "node_rank": "this node's number, from 0",
    "gpus_per_node": "how many GPUs of each node the job has; 1 where it has none",
    "head": "the first node's name, on the fast network where the site has one",
    "port": "a port of the first node that is the run's",
}
"""What stands in braces in words of `argv`, and what takes its place; docs/run-file.md shows it."""
_PLACE = re.compile(rf"\{{({'|'.join(PLACES).replace('.NAME', '[.][A-Za-z0-9_.-]+')})\}}")
_VARIABLES = {
    "run": Var("HPC_RUN"),
    "checkpoints": Var("HPC_CHECKPOINTS"),
    "start": Var("HPC_START"),
    "nodes": Var("HPC_NODES"),
    "node_rank": Var("HPC_NODE_RANK"),
    "head": Var("HPC_HEAD"),
    "port": Var("HPC_PORT"),
}
_PLACES = (*_VARIABLES, "gpus_per_node")
FILE = "metrics.jsonl"
_BATCH = "HPC_GLOBAL_BATCH_SIZE"
_START = (EnvVar(name="HPC_START", value=starts.chosen(), why="where this attempt starts"),)


@attrs.frozen(kw_only=True)
class Options:
    """A program of your own, started in every rank."""

    argv: tuple[str, ...] = ()
    """The program and its arguments, which may hold the places below; it starts in the run's own copy of
    `[code]`, or in the run directory."""
    ranks: Literal["per_gpu", "per_node", "once"] = "per_gpu"
    """How many times the program is started."""
    metrics: str = FILE
    """`metrics.jsonl`, which the program writes to {run}, or a regular expression over its log with
    named groups such as (?P<step>…) and (?P<loss>…)."""
    checkpoints: str = ""
    """Where its checkpoints are, below {checkpoints}; "." for the folder itself. Empty: it has none."""
    checkpoint_name: str = r"checkpoint-(?P<step>\d+)"
    """A regular expression of their names, with a group `step`."""
    checkpoint_last: str = ""
    """The file of a checkpoint that is written last."""


@hookimpl
def train_command(run: RunSpec, cluster: Cluster, assets: Mapping[str, Word], configs: Configs) -> Train:
    """The user's program with its places filled in."""
    options = options_of(run)
    code = assets.get("code")
    once_per_gpu = options.ranks == "per_gpu"
    threads = EnvVar(
        name="OMP_NUM_THREADS", value="1", how=How.DEFAULT, why="ranks that share cores burn them"
    )
    layout = _layout(options)
    start = starts.word(starts.of_run(run), assets)
    beginning = starts.layer(start, layout) if start != "" else Layer()
    return Train(
        argv=tuple(filled(word, run, cluster, assets) for word in options.argv),
        layer=Layer(
            env=(
                *(ranks.PER_GPU if once_per_gpu else ()),
                threads,
                *caches.env(cluster),
                *tracker.mode(run, cluster, used=False),
                *(_START if start != "" else ()),
                *_batch(run),
            ),
            job=(*caches.job(cluster), *beginning.job),
            binds=beginning.binds,
            task=(Cmd.of("cd", code),) if code is not None else (),
        ),
        ranks=Ranks(options.ranks),
        checkpoints=layout,
        start=start,
        progress=() if options.metrics == FILE else (Pattern(regex=options.metrics),),
        numbers=_numbers(run, configs),
    )


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:  # noqa: ARG001
    """What is wrong with `[train.command]` before anything is written."""
    return _problems(options_of(run), run)


def _batch(run: RunSpec) -> tuple[EnvVar, ...]:
    """The rows of a step for a program that reads them."""
    rows = run.train.global_batch_size
    why = "train.global_batch_size: the rows of one step of all ranks together"
    return (EnvVar(name=_BATCH, value=str(rows), why=why),) if rows else ()


def _numbers(run: RunSpec, configs: Configs) -> Numbers:
    """The size of the one model that the run names; what the program does with it, nobody knows here."""
    rows = run.train.global_batch_size
    models = [configs[name] for name in run.assets if name in configs]
    if len(models) != 1:
        return Numbers(rows_per_step=rows)
    from hpctrain_job.arithmetic.model_shape import Shape  # few programs say which model they train

    shape = Shape.of(models[0])
    if shape is None:
        return Numbers(rows_per_step=rows)
    return Numbers(
        rows_per_step=rows,
        parameters=shape.parameters,
        active=shape.of_experts,
        leaves_out=("memory and time: they depend on what the program does",),
    )


def _layout(options: Options) -> Layout | None:
    """How the program's checkpoints are called, where the run file says so."""
    if not options.checkpoints:
        return None
    return Layout(
        format="",
        folder="" if options.checkpoints == "." else options.checkpoints,
        name=options.checkpoint_name,
        complete=options.checkpoint_last,
    )


def options_of(run: RunSpec) -> Options:
    """The run's `[train.command]`."""
    return run.train.options if isinstance(run.train.options, Options) else Options()


def filled(text: str, run: RunSpec, cluster: Cluster, assets: Mapping[str, Word]) -> Word:
    """`text` with its places as words."""
    pieces = _PLACE.split(text)
    words = [_place(p, run, cluster, assets) if i % 2 else p for i, p in enumerate(pieces)]
    return Join(*(word for word in words if word != "")) if len(words) > 1 else text


def _place(name: str, run: RunSpec, cluster: Cluster, assets: Mapping[str, Word]) -> Word:
    if name == "gpus_per_node":
        return str(max(1, ranks.gpus_per_node(run, cluster)))
    if name in _VARIABLES:
        return _VARIABLES[name]
    return assets.get(name.partition(".")[2], f"{{{name}}}")


def _problems(options: Options, run: RunSpec) -> Iterator[Problem]:
    where = "train.command"
    if not options.argv:
        yield Problem(
            code="command-argv",
            message="the command trainer has no command",
            where=f"{where}.argv",
            hint='[train.command]\nargv = ["python", "train.py"]',
        )
    for name in dict.fromkeys(re.findall(r"\{assets\.([^{}]*)\}", " ".join(options.argv))):
        if name not in run.assets:
            near = _near(name, run.assets)
            yield Problem(
                code="unknown-asset",
                message=f"there is no asset {name}",
                where=f"{where}.argv",
                hint=f"{{assets.{near}}}" if near else f'[assets]\n{name} = {{ hub = "…" }}',
            )
    yield from _places(options, run)
    yield from starts.problems(run)
    yield from _start(options, run)
    if options.metrics != FILE:
        yield from _pattern("metrics", options.metrics, ("step",))
    if options.checkpoints:
        yield from _pattern("checkpoint_name", options.checkpoint_name, ("step",))


def _start(options: Options, run: RunSpec) -> Iterator[Problem]:
    """A place without a start, and a start that nothing in the command reads."""
    is_named = any("{start}" in word or "HPC_START" in word for word in options.argv)
    text = starts.of_run(run)
    if is_named and not text:
        yield Problem(
            code="start-missing",
            message="argv names {start}, and the run file has no start",
            where="train.command.argv",
            notes=("the run's own newest checkpoint is in {checkpoints}: the program looks for it",),
            hint='[checkpoint]\nstart = "/…"',
        )
    if text and not is_named:
        yield Problem(
            code="start-missing",
            message=f"no word of argv is {{start}}: the program must read HPC_START to start at {text}",
            where="train.command.argv",
            hint='argv = ["…", "--load={start}"]',
            fatal=False,
        )


def _places(options: Options, run: RunSpec) -> Iterator[Problem]:
    """A word in braces that reaches the program as it stands, and is like one that would be filled in."""
    for name in dict.fromkeys(re.findall(_WORD, " ".join(options.argv))):
        front, dot, asset = name.partition(".")
        if name in _PLACES or front == "assets":  # filled in, or said above
            continue
        place = f"assets.{name}" if name in run.assets else _near(name.lower(), _PLACES, 0.8)
        if dot and _near(front.lower(), ("assets",), 0.8):
            place = f"assets.{_near(asset, run.assets) or asset}"
        if place:
            yield Problem(
                code="command-place",
                message=f"the program receives {{{name}}} unchanged; {{{place}}} is filled in",
                where="train.command.argv",
                hint=f"{{{place}}}",
                fatal=False,
            )


def _near(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(words), 1, cutoff)), "")


def _pattern(key: str, text: str, groups: tuple[str, ...]) -> Iterator[Problem]:
    where = f"train.command.{key}"
    try:
        pattern = re.compile(text)
    except re.error as error:
        message = f"{key} is not a regular expression: {error}"
        yield Problem(code="command-pattern", message=message, where=where)
        return
    for group in groups:
        if group not in pattern.groupindex:
            yield Problem(
                code="command-pattern",
                message=f"{key} has no group {group}",
                where=where,
                hint=rf"(?P<{group}>\d+)",
            )
