"""An environment's description for the Container Engine (EDF): a TOML file whose paths are words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from hpctrain.plugin import Bind, File, Join, Quote, RunSpec, Var, Word
from hpctrain_plugins.environments.edf.containerfile import INSIDE
from hpctrain_plugins.environments.edf.image_request import ImageRequest

NAME = "environment.toml"
BASE = "own.toml"
STEP = Join("./steps/", Var("HPC_STEP"), f"/{BASE}")
RUN = "${HPC_RUN}"
"""The engine expands it: whatever starts a rank, or a terminal in a job that is held, exports HPC_RUN."""
BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def word(request: ImageRequest) -> Word:
    """What makes the starter use the description. By path: a name would be searched in your own ~/.edf; a
    relative one begins at the run's folder."""
    option = "--edf" if request.stored else "--environment"
    return Join(f"{option}=./steps/", Var("HPC_STEP"), f"/{NAME}")


def files(run: RunSpec, request: ImageRequest, binds: Iterable[Bind]) -> tuple[File, ...]:
    """The description beside the step's scripts, and below it the user's own where there is one."""
    options = request.options
    if not options.edf:
        body = (*_named("image", request.entered), *_mounts(request, binds), *_own_keys(request))
        return (_file(body),)
    # The engine adds the mounts of both: what the run needs is seen, whatever the user's description says.
    user_file = File(path=BASE, body=(run.texts.get(options.edf, ""),))
    return (_file((*_named("base_environment", STEP), *_mounts(request, binds))), user_file)


def _file(body: Iterable[Word]) -> File:
    return File(path=NAME, body=_merged(body), quote=Quote.TOML)


def _named(key: str, value: Word) -> Iterator[Word]:
    yield f"{key} = "
    yield json.dumps(value) if isinstance(value, str) else value
    yield "\n"


def _mounts(request: ImageRequest, binds: Iterable[Bind]) -> Iterator[Word]:
    yield "mounts = [\n"
    for bind in binds:
        yield from ("    ", _mount(bind), ",\n")
    if request.venv:
        yield from ("    ", Join(request.venv.loc, f":{INSIDE}:sqsh"), ",\n")
    yield from (f"    {json.dumps(mount)},\n" for mount in request.options.mounts)
    yield "]\n"
    # The ranks' script is named from here; the image's own folder would not know it.
    yield f'workdir = "{RUN}"\n'


def _own_keys(request: ImageRequest) -> Iterator[str]:
    """What is written only where it differs from the engine's own default, and the hooks' table."""
    if not request.options.writable:
        yield "writable = false\n"
    if request.entrypoint or request.stored:  # Sarus Suite runs it unless it is told not to
        yield f"entrypoint = {str(request.entrypoint).lower()}\n"
    yield from _annotations(request.annotations.items())


def _mount(bind: Bind) -> Word:
    flags = (":ro",) if bind.readonly else ()
    source = _for_engine(bind.source)
    return Join(source, ":", _for_engine(bind.target) if bind.target else source, *flags)


def _for_engine(word: Word) -> Word:
    """The run's directory in the engine's own words, so that the description need not wait for the job."""
    return RUN if word == Var("HPC_RUN") else word


def _annotations(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One table: its dotted names are nested tables, and the engine reads nothing else."""
    for number, (name, value) in enumerate(sorted(rows)):
        if number == 0:
            yield "\n[annotations]\n"
        key = ".".join(part if BARE.match(part) else json.dumps(part) for part in name.split("."))
        yield f"{key} = {json.dumps(value)}\n"


def _merged(body: Iterable[Word]) -> tuple[Word, ...]:
    """Text next to text as one part; strings that are words (an image's path) are quoted here."""
    parts: list[Word] = []
    for part in body:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return tuple(parts)
