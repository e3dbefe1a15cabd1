"""`hpctrain edf install`: a run's description under a name, for jobs that hpctrain does not write."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click

from hpctrain.cli import opening
from hpctrain.cli.opening import run_options
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.model.layer import File
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.words import Join, Var, Word
from hpctrain.render import shell
from hpctrain.run import files
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
        raise ConfigError.of("usage", f"{name!r} is no plain name", hint="hpctrain edf install NAME")
    session = opening.one(run_file, on, sets, account)
    plan = session.plan()
    opening.stop(plan.problems)
    text = _text(_file(plan, session.cluster.name), session.binding)
    # The first folder that the engine searches.
    folder = Path(session.environ.get("EDF_PATH", "").split(":")[0] or Path.home() / ".edf")
    path = folder / f"{name}.toml"
    if path.exists() and not force and not path.read_text(errors="replace").startswith(HEAD):
        raise ConfigError.of("exists", f"{path} is not one that hpctrain wrote", hint="--force")
    files.make_folder(folder)
    files.write(path, f"{HEAD}: {session.raw.path.name}, plan {plan.digest[:8]}\n{text}")
    if out.flags.json:
        out.document("edf", path=str(path), image=_image(text))
    else:
        out.lines([f"wrote {os.fspath(path)}"])
        out.say(f"--environment={name} finds it")
    return 0


def _file(plan: Plan, cluster: str) -> File:
    """The description, or the user's own, which is complete."""
    found = {file.path: file for step in plan.steps for file in step.around.files if step.step.inside}
    if NAME not in found:
        raise ConfigError.of(
            "no-environment",
            f"the run's environment on {cluster} is no image of the Container Engine",
            where="environment.use",
            hint='use = "edf"',
        )
    return found.get(BASE, found[NAME])


def _text(file: File, binding: Binding) -> str:
    """The file for any folder, and for any user where paths are not known here."""
    text = "".join(part if isinstance(part, str) else json.dumps(_said(part, binding)) for part in file.body)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("workdir = "))


def _said(word: Word, binding: Binding) -> str:
    """A word as the engine reads it: it knows variables of the login, and none of ours."""
    word = shell.opened(word, binding)
    if isinstance(word, Join):
        return "".join(_said(part, binding) for part in word.parts)
    if isinstance(word, Var) and not word.name.startswith("HPC_"):
        return f"${{{word.name}}}"
    return shell.plain(word, binding)


def _image(text: str) -> str:
    match = re.search(r'^image = "(.*)"$', text, re.M)
    return match[1] if match else ""
