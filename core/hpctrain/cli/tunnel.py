"""`hpctrain tunnel`: an editor on a compute node, from a browser or from your own machine."""

from __future__ import annotations

import time
from typing import Any

import attrs
import click

from hpctrain.cli.on_node import TICK_SECONDS, Asked, Held, below, hold, node_options
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.model.run import Asset, Resources
from hpctrain.plan.goal import TUNNEL, Goal
from hpctrain.run import editor, goals
from hpctrain.session import Session

USUAL, GPUS = "24h", 4


@click.command("tunnel")
@node_options
@click.option("--cli", metavar="URL", help="another archive of the editor's command line")
@click.option("--sha256", metavar="HEX", help="what its content must be")
@click.option("--update", is_flag=True, help="today's release instead of the one used before")
@click.pass_obj
def command(out: Out, /, cli: str | None, sha256: str | None, update: bool, **options: Any) -> int:
    """Open an editor's tunnel into a compute node: one node, 4 GPUs, 24h where nothing else is said.

    The code and the link are shown as soon as the job has them. Whoever owns the account that the code is
    entered for gets a shell as you; the tunnel ends with its job: hpctrain cancel.
    """
    if bool(cli) is not bool(sha256):
        raise ConfigError.of("usage", "--cli and --sha256 go together", hint="--cli URL --sha256 HEX")
    usual: dict[str, Any] = {}

    def goal(plain: Session, resources: Resources) -> Goal:
        named = Asset(url=cli, sha256=sha256 or "") if cli else None
        found = named or editor.archive(plain.cluster.arch, plain.environ, anew=update)
        if options["gpus"] is None and options["nodes"] is None:
            most = plain.cluster.hardware.gpus_per_node
            resources = attrs.evolve(resources, gpus=min(usual.get("gpus", GPUS), most) or None)
        return goals.tunnel(resources, found, plain.run.name, below(plain))

    asked = Asked(**options)
    usual |= asked.facts("tunnel")
    session = asked.session(Duration.parse(usual.get("time", USUAL)), goal)
    held = hold(out, session, TUNNEL)
    try:
        found = _said(out, held)
    except BaseException:
        held.end()
        raise
    if out.flags.json:
        out.document("tunnel", run=held.run.title, path=str(held.run.path), **found)
    out.next(f"hpctrain cancel {held.run.title}")
    return 0


def _said(out: Out, held: Held) -> dict[str, str]:
    """Show each thing a person needs as the job says it, until the link is there."""
    path = held.run.step(TUNNEL) / "said"
    held.until_started(path)
    shown: dict[str, str] = {}
    while "link" not in shown:
        ended = (held.run.step(TUNNEL) / "exit").exists()
        found = editor.words(path.read_text("utf-8", "replace")) if path.exists() else {}
        new = {name: value for name, value in found.items() if name not in shown}
        shown |= new
        if not out.flags.json:
            out.lines([f"{name:<6} {value}" for name, value in new.items()])
        if ended and "link" not in shown:
            raise JobFailed.of(
                "no-tunnel",
                f"{held.run.title} ended without a tunnel",
                hint=f"hpctrain logs {held.run.title}",
            )
        time.sleep(TICK_SECONDS)
    return shown
