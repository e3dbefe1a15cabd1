"""`hpctrain sync`: what a run logged for W&B while it had no network, sent from here."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, StepFailed
from hpctrain.run.find import find
from hpctrain.run.tools import Tools, ending

PASSED_VARIABLES = ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY", "WANDB_PROJECT", "SSL_CERT_FILE")
PROXIES = tuple(
    name for word in ("http", "https", "no") for name in (f"{word}_proxy", f"{word.upper()}_PROXY")
)
MINUTES = 30
"""The longest that one folder may take."""
DEEPEST = 6
"""Folders below the run in which is looked; links are not followed."""
_OFFLINE = "offline-run-"


@click.command("sync")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Send the offline W&B folders of RUN (the newest without one) with the `wandb` program of this machine.

    wandb marks what it has sent and skips it next time.
    """
    directory = find(run, out.environ)
    folders = offline(directory.path)
    left = [folder for folder in folders if not any(folder.glob("*.wandb.synced"))]
    tools = Tools(out.environ, keep=(*PASSED_VARIABLES, *PROXIES))
    if left:
        wandb = tools.which("wandb")
        if wandb is None:
            raise ConfigError.of("no-program", "wandb is not on PATH", hint="pip install wandb")
        tools.hide(*filter(None, (out.environ.get("WANDB_API_KEY"),)))
        for folder in left:
            _send(out, tools, wandb, folder)
    if out.flags.json:
        out.document(
            "sync", run=directory.title, sent=[f.name for f in left], folders=[f.name for f in folders]
        )
        return 0
    out.lines([f"{folder.name}  sent" for folder in left] or ["nothing is left to send"])
    return 0


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
