"""`hpctrain exec -- CMD`: one command on a compute node, as if it ran here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpctrain.cli.logs import tail
from hpctrain.cli.on_node import Asked, Held, below, hold, node_options
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, JobFailed
from hpctrain.model.duration import Duration
from hpctrain.plan.goal import EXEC
from hpctrain.run.execute import last_lines
from hpctrain.run.goals import execute
from hpctrain.run.status import exit_record

USUAL = Duration.parse("30m")
EVERYTHING = 1_000_000
"""Lines: what a command printed is shown from its beginning."""


class AfterDashes(click.Command):
    """Options stand before `--`, the command behind it, whatever its words look like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, dashes, rest = args, [], []
        if "--" in args:
            at = args.index("--")
            own, dashes, rest = args[:at], args[at : at + 1], args[at + 1 :]
        ctx.meta["hpctrain.argv"] = tuple(rest)
        if not rest and "-h" not in own and "--help" not in own:
            what = "nothing stands behind --" if dashes else "the command stands behind --"
            raise ConfigError.of("usage", what, hint="hpctrain exec -- nvidia-smi")
        return super().parse_args(ctx, own)

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
    asked = Asked(**options)
    session = asked.session(USUAL, lambda plain, resources: execute(argv, resources, below(plain)))
    held = hold(out, session, EXEC)
    try:
        held.until_started(_log(held))
        tail(out, held.run, [EXEC], 0, EVERYTHING, raw=True)
        return _code(held)
    except BaseException:
        held.end()
        raise


def _log(held: Held) -> Path:
    return held.run.log(EXEC, 0)


def _code(held: Held) -> int:
    """The command's own code; JobFailed says why there is none."""
    ended = exit_record(held.run.path, EXEC)
    found = held.steps()
    held.refuse_failed(found)
    mine = found[EXEC]
    if ended is not None and not _log(held).exists():
        said = last_lines(held.run.log(EXEC), 8)
        raise JobFailed.of("job-failed", f"{held.run.title} ended before its command began", notes=said)
    if ended is not None and not ended.signal and not mine.reason.startswith("it ran into"):
        return ended.code
    why = mine.reason or "its job left no word"
    raise JobFailed.of(
        "job-failed", f"{held.run.title} {mine.state.value}: {why}", hint=f"hpctrain logs {held.run.title}"
    )
