"""`hpctrain doctor --job`: one short job that asks compute nodes, and what they answered."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from hpctrain.cli.out import Out
from hpctrain.cli.shared.on_node import NodeRun, hold
from hpctrain.doctor import nodes
from hpctrain.doctor.question import Examined
from hpctrain.doctor.site import Site
from hpctrain.errors import JobFailed
from hpctrain.model.duration import Duration
from hpctrain.model.run import Resources
from hpctrain.plan.goal import DOCTOR
from hpctrain.run.prepare.goals import ANSWERS, examine, modest
from hpctrain.session import Session

LENGTH = Duration.parse("10m")
TICK_SECONDS = 1.0
RUN = """\
name = "hpctrain"
cluster = "{cluster}"

[environment]
use = ""

[train]
use = "command"

[train.command]
argv = ["true"]
"""
"""What the job is a part of: a run without an environment, whose modules and network are the site's."""


def examined(out: Out, site: Site, count: int, queue: str, python: str) -> Examined:
    """Submit the job, wait for its end, judge the answers; `python` is one with torch on the nodes."""
    with tempfile.TemporaryDirectory() as folder:
        run_file = Path(folder) / "run.toml"
        run_file.write_text(RUN.replace("{cluster}", site.cluster.name), encoding="utf-8")
        plain = Session(run_file, account=site.account or None, environ=out.environ)
        questions = nodes.questions(site, count, python)
        requested = Resources(nodes=count, queue=queue)
        resources = modest(requested, plain.run, plain.cluster, LENGTH)
        submitted = time.time()
        node_run = hold(out, plain.with_goal(examine(nodes.document(questions), resources)), DOCTOR)
        try:
            _wait(out, node_run)
        except BaseException:
            node_run.end()
            raise
    reports = nodes.answered(node_run.run.path / "steps" / DOCTOR / ANSWERS)
    if not reports:
        title = node_run.run.title
        reason = node_run.steps()[DOCTOR].reason or "its job left no answer"
        raise JobFailed.of("job-failed", f"{title}: {reason}", hint=f"hpctrain logs {title}")
    return nodes.examined(questions, reports, submitted, count)


def _wait(out: Out, node_run: NodeRun) -> None:
    """Until the job is over; why it waits is said once."""
    last_reason = ""
    while not (state := node_run.steps()[DOCTOR]).state.over:
        node_run.refuse_failed(node_run.steps())
        if state.reason not in ("", last_reason):
            out.say(f"queued: {state.reason}")
            last_reason = state.reason
        time.sleep(TICK_SECONDS)
