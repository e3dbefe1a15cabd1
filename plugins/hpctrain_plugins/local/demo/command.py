"""`hpctrain demo`: build an environment, train a small model, check what it learned, draw the loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hpctrain.command import Out, RunDirectory, Session, plot
from hpctrain.command import write_loss_picture as write_picture
from hpctrain.plugin import JobFailed
from hpctrain.toolbox import make_folder, write_file
from hpctrain_plugins.local.demo import earlier, show

HPCTRAIN_API = 1

FOLDER = Path("hpctrain-demo")
SHIPPED = ("run.toml", "make_data.py")
FIRST, LAST, EXACT = 5.0, 0.5, 0.9
"""The loss must come from above FIRST to below LAST, and this share of answers must be exact."""


@click.command("demo")
@click.option("--again", is_flag=True, help="train again, even if it has already run")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="change a key of the run file")
@click.pass_obj
def command(out: Out, again: bool, sets: tuple[str, ...]) -> int:
    """Train a 0.8 M-parameter model on this computer, from nothing; then the same file runs elsewhere.

    Everything is real: the environment, the trainer, the scheduler of this machine. Ctrl-C stops; the
    same command goes on where it stopped.
    """
    for name in SHIPPED:
        _bring(name)
    session = Session(FOLDER / "run.toml", sets=sets)
    if not session.locked:
        out.say(f"demo on this computer; all it makes is below {FOLDER} and {session.binding.roots['env']}")
        with show.locking(out):
            session = session.relock()
    prepared = session.prepared()
    prepared.judge()
    run = None if again else earlier.done(prepared)
    if run is None:
        run = show.executed(out, prepared, earlier.unfinished(prepared))
    else:
        out.say(*(f"{s.name:<10} exists" for s in prepared.plan.steps))
    return _result(out, run)


def _bring(name: str) -> None:
    """The shipped file in the demo's folder; what the user changed there stays."""
    target = FOLDER / name
    if not target.exists():
        make_folder(FOLDER)
        write_file(target, (Path(__file__).parent / name).read_text(encoding="utf-8"))


def _result(out: Out, run: RunDirectory) -> int:
    """The curve, the picture, one line; JobFailed when the model did not learn."""
    from hpctrain_job.metrics import newest, read

    rows = [dict(r) for r in newest(read(run.metrics)) if r.get("loss") is not None]
    losses = [r["loss"] for r in rows]
    answers = json.loads((run.path / "run.json").read_text())["answers"]
    exact = answers["after"]["exact"]
    picture = write_picture(FOLDER / "loss.svg", run.title, rows)
    if not out.flags.json:
        out.say(*plot("loss", [r["step"] for r in rows], losses, out.err), "")
        out.say(_learned(answers), f"run file   {FOLDER}/run.toml      one word changes the machine")
    if not (losses[0] > FIRST and losses[-1] < LAST and exact >= EXACT):
        raise JobFailed.of(
            "demo-failed",
            f"the model did not learn: loss {losses[0]:.3f} -> {losses[-1]:.3f}, exact {exact:.3f}",
            notes=(f"needed: loss from above {FIRST} to below {LAST}, exact at least {EXACT}",),
            hint=f"hpctrain logs {run.title}",
        )
    if out.flags.json:
        out.document("demo", run=run.title, loss=losses[-1], exact=exact, picture=str(picture))
    else:
        out.lines([f"run={run.title} loss={losses[-1]:.4f} exact={exact:.3f} picture={picture}"])
        out.next(f"hpctrain plan {FOLDER}/run.toml --on frontier")
    return 0


def _learned(answers: dict[str, Any]) -> str:
    before, after = answers["before"], answers["after"]
    right = (round(a["exact"] * a["of"]) for a in (before, after))
    return "held-out sentences answered exactly: {} -> {} of {}".format(*right, after["of"])
