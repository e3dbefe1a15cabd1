"""`hpctrain sync`: what a run logged for W&B while it had no network, sent from here."""

from __future__ import annotations

import os
import time
from pathlib import Path

import attrs
import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.survived import survived
from hpctrain.errors import ConfigError, StepFailed
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.find import find, open_run
from hpctrain.run.system.tools import Tools, ending
from hpctrain.run.waiting import is_over
from hpctrain.run.watch.watching import Watched

PASSED_VARIABLES = ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY", "WANDB_PROJECT", "SSL_CERT_FILE")
PROXIES = tuple(
    name for word in ("http", "https", "no") for name in (f"{word}_proxy", f"{word.upper()}_PROXY")
)
MINUTES = 30
"""The longest that one folder may take."""
DEEPEST = 6
"""Folders below the run in which is looked; links are not followed."""
_OFFLINE = "offline-run-"


FOLLOW_SECONDS = 60.0
"""Between two looks with --follow: what a curve in a browser needs, and no more."""


@click.command("sync")
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="go on while the run lives, once a minute")
@click.pass_obj
def command(out: Out, run: str | None, follow: bool) -> int:
    """Send the offline W&B folders of RUN (the newest without one) with the `wandb` program of this machine.

    What was sent and has not grown since is skipped.
    """
    directory = find(run, out.environ)
    sent = _followed(out, directory) if follow else _sent(out, directory.path)
    if out.flags.json:
        names = [folder.name for folder in offline(directory.path)]
        out.document("sync", run=directory.title, sent=sent, folders=names)
        return 0
    out.lines([f"{name}  sent" for name in sent] or ["nothing is left to send"])
    return 0


def _followed(out: Out, directory: RunDirectory) -> list[str]:
    """What was sent until the run was over; what fails meanwhile is told, and tried again a minute later."""
    watched, names = Watched(open_run(str(directory.path), out.environ)), dict[str, None]()
    with survived(out, directory.title):
        while not is_over(watched.state):
            try:
                sent = _sent(out, directory.path)
            except StepFailed as error:
                out.warn(attrs.evolve(problem, fatal=False) for problem in error.problems)
            else:
                out.say(f"{time.strftime('%H:%M:%S')}  {', '.join(sent) or 'nothing new'}")
                names.update(dict.fromkeys(sent))
            time.sleep(FOLLOW_SECONDS)
    names.update(dict.fromkeys(_sent(out, directory.path)))
    return list(names)


def _sent(out: Out, path: Path) -> list[str]:
    """Send what is left below a run's folder, oldest first."""
    left = [folder for folder in offline(path) if _is_left(folder)]
    if not left:
        return []
    tools = Tools(out.environ, keep=(*PASSED_VARIABLES, *PROXIES))
    wandb = tools.which("wandb")
    if wandb is None:
        raise ConfigError.of("no-program", "wandb is not on PATH", hint="pip install wandb")
    tools.hide(*filter(None, (out.environ.get("WANDB_API_KEY"),)))
    for folder in left:
        _send(out, tools, wandb, folder)
    return [folder.name for folder in left]


def _is_left(folder: Path) -> bool:
    """Whether it has grown since wandb marked it as sent, or never was."""
    marks = [mark.stat().st_mtime_ns for mark in folder.glob("*.wandb.synced")]
    return not marks or any(log.stat().st_mtime_ns > max(marks) for log in folder.glob("*.wandb"))


def offline(path: Path) -> list[Path]:
    """The offline folders below a run, oldest first: in WANDB_DIR, or where a program says that it logs."""
    runs: list[Path] = []
    for folder, names, _ in os.walk(path):
        runs += [Path(folder, name) for name in names if name.startswith(_OFFLINE)]
        deeper = len(Path(folder).relative_to(path).parts) < DEEPEST
        names[:] = [name for name in names if deeper and not name.startswith((".", _OFFLINE))]
    return sorted(runs, key=lambda f: f.name)


def _send(out: Out, tools: Tools, wandb: str, folder: Path) -> None:
    log = folder.parent / f"{folder.name}.sync.log"
    code = tools.stream(
        (wandb, "sync", str(folder)),
        log=log,
        on_line=out.say if out.flags.verbose else None,
        timeout=MINUTES * 60,
    )
    if code:
        raise StepFailed.of(
            "sync-failed",
            f"wandb sync {folder.name} {ending(code)}",
            where=str(log),
            hint="wandb login      (or WANDB_API_KEY in the environment), then hpctrain sync",
        )
