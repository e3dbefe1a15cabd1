"""`hpctrain exec -- CMD`: one command on a compute node, as if it ran here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpctrain.cli.commands.logs import tail
from hpctrain.cli.out import Out
from hpctrain.cli.shared.on_node import NodeRequest, NodeRun, below, hold, node_options
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.plan.goal import EXEC
from hpctrain.run.prepare.goals import execute
from hpctrain.run.steps.execute import last_lines
from hpctrain.run.steps.status import exit_record

USUAL = Duration.parse("30m")
EVERYTHING = 1_000_000
"""Lines: what a command printed is shown from its beginning."""


class AfterDashes(click.Command):
    """Options stand before `--`, the command behind it, whatever its words look like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own_args, dashes, command_args = args, [], []
        if "--" in args:
            at = args.index("--")
            own_args, dashes, command_args = args[:at], args[at : at + 1], args[at + 1 :]
        ctx.meta["hpctrain.argv"] = tuple(command_args)
        if not command_args and "-h" not in own_args and "--help" not in own_args:
            message = "there is no command after --" if dashes else "the command follows --"
            raise ConfigError.of("usage", message, hint="hpctrain exec -- nvidia-smi")
        return super().parse_args(ctx, own_args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "--", "CMD..."]


@click.command("exec", cls=AfterDashes)
@node_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int:
    """Run CMD once on a compute node in the run's environment, and end as it ends.

    Its output is shown as it is written, its exit code is ours, Ctrl-C cancels its job. What is missing of
    the environment is built first.
    """
    out: Out = context.obj
    argv = context.meta["hpctrain.argv"]
    request = NodeRequest(**options)
    session = request.session(USUAL, lambda plain, resources: execute(argv, resources, below(plain)))
    node_run = hold(out, session, EXEC)
    try:
        node_run.until_started(_log(node_run))
        tail(out, node_run.live, [EXEC], 0, EVERYTHING, raw=True)
        return _code(node_run)
    except BaseException:
        node_run.end()
        raise


def _log(node_run: NodeRun) -> Path:
    return node_run.run.log(EXEC, 0)


def _code(node_run: NodeRun) -> int:
    """The command's own code; JobFailed says why there is none."""
    ended = exit_record(node_run.run.path, EXEC)
    states = node_run.steps()
    node_run.refuse_failed(states)
    step_state = states[EXEC]
    if ended is not None and not _log(node_run).exists():
        log_lines = last_lines(node_run.run.log(EXEC), 8)
        raise JobFailed.of(
            "job-failed", f"{node_run.run.title} ended before its command began", notes=log_lines
        )
    if ended is not None and not ended.signal and not step_state.reason.startswith("it ran into"):
        return ended.code
    why = step_state.reason or "its job left no word"
    raise JobFailed.of(
        "job-failed",
        f"{node_run.run.title} {step_state.state.value}: {why}",
        hint=f"hpctrain logs {node_run.run.title}",
    )
