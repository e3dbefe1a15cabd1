"""`hpctrain tunnel`: an editor on a compute node, from a browser or from your own machine."""

from __future__ import annotations

import time
from typing import Any

import attrs
import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.on_node import TICK_SECONDS, NodeRequest, NodeRun, below, hold, node_options
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.model.run import Asset, Resources
from hpctrain.plan.goal import TUNNEL, Goal
from hpctrain.run.prepare import editor, goals
from hpctrain.session import Session

USUAL, GPUS = "24h", 4


@click.command("tunnel")
@node_options
@click.option("--cli", metavar="URL", help="another archive of the editor's command line")
@click.option("--sha256", metavar="HEX", help="what its content must be")
@click.option("--update", is_flag=True, help="today's release instead of the one used before")
@click.pass_obj
def command(out: Out, /, cli: str | None, sha256: str | None, update: bool, **options: Any) -> int:
    """Open an editor's tunnel into a compute node: one node, 4 GPUs, 24h by default.

    The code and the link are shown as soon as the job has them. Whoever owns the account that the code is
    entered for gets a shell as you; the tunnel ends with its job: hpctrain cancel.
    """
    if bool(cli) is not bool(sha256):
        raise ConfigError.of("usage", "--cli and --sha256 go together", hint="--cli URL --sha256 HEX")
    usual: dict[str, Any] = {}

    def goal(plain: Session, resources: Resources) -> Goal:
        named = Asset(url=cli, sha256=sha256 or "") if cli else None
        archive = named or editor.archive(plain.cluster.arch, plain.environ, anew=update)
        if options["gpus"] is None and options["nodes"] is None:
            most = plain.cluster.hardware.gpus_per_node
            resources = attrs.evolve(resources, gpus=min(usual.get("gpus", GPUS), most) or None)
        return goals.tunnel(resources, archive, plain.run.name, below(plain))

    request = NodeRequest(**options)
    usual |= request.facts("tunnel")
    session = request.session(Duration.parse(usual.get("time", USUAL)), goal)
    node_run = hold(out, session, TUNNEL)
    try:
        access = _show_access(out, node_run)
    except BaseException:
        node_run.end()
        raise
    if out.flags.json:
        out.document("tunnel", run=node_run.run.title, path=str(node_run.run.path), **access)
    out.next(f"hpctrain cancel {node_run.run.title}")
    return 0


def _show_access(out: Out, node_run: NodeRun) -> dict[str, str]:
    """Show each thing a person needs as the job says it, until the link is there."""
    path = node_run.run.step(TUNNEL) / "said"
    node_run.until_started(path)
    printed: dict[str, str] = {}
    while "link" not in printed:
        ended = (node_run.run.step(TUNNEL) / "exit").exists()
        words = editor.words(path.read_text("utf-8", "replace")) if path.exists() else {}
        new = {name: value for name, value in words.items() if name not in printed}
        printed |= new
        if not out.flags.json:
            out.lines([f"{name:<6} {value}" for name, value in new.items()])
        if ended and "link" not in printed:
            raise JobFailed.of(
                "no-tunnel",
                f"{node_run.run.title} ended without a tunnel",
                hint=f"hpctrain logs {node_run.run.title}",
            )
        time.sleep(TICK_SECONDS)
    return printed
