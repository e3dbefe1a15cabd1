"""Where the first attempt of a training starts, as `[checkpoint]` says it, and the lines that see to it.

`start` is not `resume`: the start serves the first attempt alone, and every later one goes on from the run's
own newest checkpoint. A checkpoint that `resume` names is such a start too: on from there, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hpctrain.plugin import Bind, Cmd, Join, Layer, Layout, Loc, Problem, Raw, RunSpec, Var, Word

RULE = "the first attempt starts there, every later one goes on from the run's own newest checkpoint"
AUTO, NEVER = "auto", "never"
CHOSEN = "start"
"""The file beside the training's scripts that holds what this attempt begins with."""
_PLACE = re.compile(r"\{(assets|checkpoints)\.([^{}]*)\}(/.*)?")
_RUN = re.compile(r"[A-Za-z0-9][\w.-]*/\d+-[0-9a-f]{8}(?:/[\w./-]+)?")


def of_run(run: RunSpec) -> str:
    """What `[checkpoint]` says of the first attempt's start, or nothing."""
    resume = run.checkpoint.resume
    return run.checkpoint.start or ("" if resume in (AUTO, NEVER) else resume)


def key_of(run: RunSpec) -> str:
    """The key of the run file that says so."""
    return "checkpoint.start" if run.checkpoint.start else "checkpoint.resume"


def word(text: str, assets: Mapping[str, Word]) -> Word:
    """The place that `text` names."""
    match = _PLACE.fullmatch(text)
    if match is None:
        return text
    role, name, below = match[1], match[2], match[3] or ""
    if role == "checkpoints":
        return Loc("checkpoints", name + below)
    if name not in assets:
        return text  # which the check of names tells
    return Join(assets[name], below) if below else assets[name]


def problems(run: RunSpec) -> Iterator[Problem]:
    """What is wrong with `[checkpoint] start` and `resume`."""
    text, where = of_run(run), key_of(run)
    if run.checkpoint.start and run.checkpoint.resume != AUTO:
        yield Problem(
            code="start-conflict",
            message=f'start is {run.checkpoint.start}, and resume = "{run.checkpoint.resume}" contradicts it',
            where="checkpoint.start",
            hint='resume = "auto"      (or no such line)',
            notes=(RULE,),
        )
    match = _PLACE.fullmatch(text)
    if match and match[1] == "assets" and match[2] not in run.assets:
        from difflib import get_close_matches

        near = get_close_matches(match[2], run.assets, 1)
        hint = f"{{assets.{near[0]}}}" if near else f'[assets]\n{match[2]} = {{ path = "/…" }}'
        message = f"there is no asset {match[2]}"
        yield Problem(code="unknown-asset", message=message, where=where, hint=hint)
    elif text and not is_place(text):
        yield misplaced(text, where)


def misplaced(text: str, where: str) -> Problem:
    """A start that is no place on the cluster."""
    hint = 'start = "/…"'
    if where == "checkpoint.resume":
        hint = 'resume = "auto"      (the newest; or "never", or a path from /)'
    if re.fullmatch(r"[\w.-]+/\d+(?:-[0-9a-f]{8})?", text):
        hint = f'start = "{{checkpoints.{text}{"" if "-" in text.rpartition("/")[2] else "-DIGEST"}}}"'
    return Problem(
        code="start-place",
        message=f"{text} is no place on the cluster to start from",
        where=where,
        hint=hint,
        notes=(
            "a path from /, {assets.NAME} or {checkpoints.RUN/NUMBER-DIGEST}, as the run's folder is called",
        ),
    )


def is_place(text: str) -> bool:
    """Whether the plan can say where `text` lies on the cluster."""
    match = _PLACE.fullmatch(text)
    if match is None:
        return text.startswith("/")
    inside = match[2] + (match[3] or "")
    return ".." not in inside.split("/") and (match[1] == "assets" or bool(_RUN.fullmatch(inside)))


def layer(
    start: Word, layout: Layout | None, *, needs: Iterable[str] = (), config: tuple[str, str] | None = None
) -> Layer:
    """The job's line that chooses where this attempt begins; `config` are the files that go on and start."""
    step = Join(Var("HPC_RUN"), "/steps/train/")
    own: Word = Var("HPC_CHECKPOINTS")
    words: list[Word] = [start, Join(own, f"/{layout.folder}") if layout and layout.folder else own]
    words += [f"--name={layout.name}", f"--last={layout.complete}"] if layout else []
    words += [f"--needs={name}" for name in needs]
    if config is not None:
        words += [Join("--config=", step, config[0]), Join("--first=", step, config[1])]
    package = Join("PYTHONPATH=", Var("HPC_RUN"), "/code/job.zip")
    choose = Cmd.of(
        *("env", package, Var("HPC_PYTHON"), "-m", "hpctrain_job.begin", *words), stdout=Join(step, CHOSEN)
    )
    return Layer(job=(choose,), binds=binds(start))


def binds(start: Word) -> tuple[Bind, ...]:
    """What a container must see of a start that lies in no storage role."""
    return (Bind(source=start, readonly=True),) if isinstance(start, str) and start else ()


def chosen() -> Word:
    """What this attempt begins with, read in a task."""
    return Raw(f'"$(<"$HPC_RUN/steps/train/{CHOSEN}")"')
