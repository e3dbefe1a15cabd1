"""An environment's description for the Container Engine (EDF): a TOML file whose paths are words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from hpctrain.model.layer import Bind, File, Quote
from hpctrain.model.run import RunSpec
from hpctrain.model.words import Join, Var, Word
from hpctrain_plugins.environments.edf import Options
from hpctrain_plugins.environments.edf.containerfile import INSIDE
from hpctrain_plugins.environments.edf.wants import Asked

NAME = "environment.toml"
BASE = "own.toml"
STEP = Join("./steps/", Var("HPC_STEP"), f"/{BASE}")
WORD = Join("--environment=./steps/", Var("HPC_STEP"), f"/{NAME}")
"""By path: a name would be searched in your own ~/.edf. Relative paths begin at the run's folder."""
BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def files(run: RunSpec, asked: Asked, binds: Iterable[Bind]) -> tuple[File, ...]:
    """The description beside the step's scripts, and below it the user's own where there is one."""
    options = asked.options
    if not options.edf:
        body = (*_named("image", asked.entered), *_mounts(asked, binds), *_own_keys(options))
        return (_file(body),)
    # The engine adds the mounts of both: what the run needs is seen, whatever the user's description says.
    own = File(path=BASE, body=(run.texts.get(options.edf, ""),))
    return (_file((*_named("base_environment", STEP), *_mounts(asked, binds))), own)


def _file(body: Iterable[Word]) -> File:
    return File(path=NAME, body=_merged(body), quote=Quote.TOML)


def _named(key: str, value: Word) -> Iterator[Word]:
    yield f"{key} = "
    yield json.dumps(value) if isinstance(value, str) else value
    yield "\n"


def _mounts(asked: Asked, binds: Iterable[Bind]) -> Iterator[Word]:
    yield "mounts = [\n"
    for bind in binds:
        yield from ("    ", _mount(bind), ",\n")
    if asked.venv:
        yield from ("    ", Join(asked.venv.loc, f":{INSIDE}:sqsh"), ",\n")
    yield from (f"    {json.dumps(mount)},\n" for mount in asked.options.mounts)
    yield "]\n"
    # The ranks' script is named from here; the image's own folder would not know it.
    yield 'workdir = "${HPC_RUN}"\n'


def _own_keys(options: Options) -> Iterator[str]:
    """What is written only where it differs from the engine's own default, and the hooks' table."""
    if not options.writable:
        yield "writable = false\n"
    if options.entrypoint:
        yield "entrypoint = true\n"
    yield from _annotations(options.annotations.items())


def _mount(bind: Bind) -> Word:
    flags = (":ro",) if bind.readonly else ()
    return Join(bind.source, ":", bind.target or bind.source, *flags)


def _annotations(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One table: its dotted names are nested tables, and the engine reads nothing else."""
    for number, (name, value) in enumerate(sorted(rows)):
        if number == 0:
            yield "\n[annotations]\n"
        key = ".".join(part if BARE.match(part) else json.dumps(part) for part in name.split("."))
        yield f"{key} = {json.dumps(value)}\n"


def _merged(body: Iterable[Word]) -> tuple[Word, ...]:
    """Text next to text as one part; strings that are words (an image's path) are quoted here."""
    found: list[Word] = []
    for part in body:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return tuple(found)
