"""`hpctrain edf install`: a run's description under a name, for jobs that hpctrain does not write."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click

from hpctrain.command import Out, open_session, run_options, stop
from hpctrain.plugin import Binding, ConfigError, File, Join, Plan, Var, Word
from hpctrain.toolbox import make_folder, plain_text, resolved_word, write_file
from hpctrain_plugins.environments.edf.table import BASE, NAME

HPCTRAIN_API = 1
HEAD = "# written by hpctrain edf install"
PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*\Z", re.ASCII)


@click.group("edf")
def command() -> None:
    """Descriptions of environments for CSCS's Container Engine."""


@command.command("install")
@click.argument("name")
@run_options
@click.option("--force", is_flag=True, help="replace a file that hpctrain did not write")
@click.pass_obj
def install(
    out: Out,
    name: str,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    force: bool,
) -> int:
    """Write the run's environment as ~/.edf/NAME.toml, where `--environment=NAME` finds it."""
    if not PLAIN.match(name):
        raise ConfigError.of("usage", f"{name!r} is not a plain name", hint="hpctrain edf install NAME")
    session = open_session(run_file, on, sets, account)
    plan = session.plan()
    stop(plan.problems)
    text = _text(_file(plan, session.cluster.name), session.binding)
    # The first folder that the engine searches.
    folder = Path(session.environ.get("EDF_PATH", "").split(":")[0] or Path.home() / ".edf")
    path = folder / f"{name}.toml"
    if path.exists() and not force and not path.read_text(errors="replace").startswith(HEAD):
        raise ConfigError.of("exists", f"{path} is not one that hpctrain wrote", hint="--force")
    make_folder(folder)
    write_file(path, f"{HEAD}: {session.source.path.name}, plan {plan.digest[:8]}\n{text}")
    if out.flags.json:
        out.document("edf", path=str(path), image=_image(text))
    else:
        out.lines([f"wrote {os.fspath(path)}"])
        out.say(f"--environment={name} finds it")
    return 0


def _file(plan: Plan, cluster: str) -> File:
    """The description, or the user's own, which is complete."""
    description_files = {
        file.path: file for step in plan.steps for file in step.around.files if step.step.inside
    }
    if NAME not in description_files:
        raise ConfigError.of(
            "no-environment",
            f"the run's environment on {cluster} is not an image of the Container Engine",
            where="environment.use",
            hint='use = "edf"',
        )
    return description_files.get(BASE, description_files[NAME])


def _text(file: File, binding: Binding) -> str:
    """The file for any folder, and for any user where paths are not known here."""
    text = "".join(
        part if isinstance(part, str) else json.dumps(_engine_text(part, binding)) for part in file.body
    )
    lines = text.splitlines(keepends=True)
    # Outside of a run the engine would refuse a variable that only a run has.
    return "".join(line for line in lines if not line.startswith("workdir = ") and "${HPC_" not in line)


def _engine_text(word: Word, binding: Binding) -> str:
    """A word as the engine reads it: it knows variables of the login, and none of ours."""
    word = resolved_word(word, binding)
    if isinstance(word, Join):
        return "".join(_engine_text(part, binding) for part in word.parts)
    if isinstance(word, Var) and not word.name.startswith("HPC_"):
        return f"${{{word.name}}}"
    return plain_text(word, binding)


def _image(text: str) -> str:
    match = re.search(r'^image = "(.*)"$', text, re.M)
    return match[1] if match else ""
