"""A user on a real Slurm: submit, watch, cancel, go on; nothing of the caller's leaks into the job."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hpctrain.run.disk.record import Record
from tests.e2e.product import Product, hidden_in, small
from tests.patience import PATIENCE, wait_for, within
from tests.rig.slurm import Rig

pytestmark = pytest.mark.slurm

TWO_NODES = """\
name    = "pair"
cluster = "rig"

[resources]
nodes = 2
time  = "5m"

[environment]
use = ""

[train]
use = "command"
[train.command]
ranks = "per_node"
"""


def pair(script: str, *more: str) -> str:
    """A run file for two nodes whose program is this line of bash on each."""
    return TWO_NODES + f"argv = {json.dumps(['bash', '-c', script])}\n" + "\n".join(more)


def on_rig(script: str, *more: str) -> str:
    """A run file for one node of the rig."""
    return small(script).replace('"local"', '"rig"') + "\n".join(more)


def until(user: Product, title: str, *states: str, seconds: float = 40) -> dict[str, Any]:
    """Wait until the run has one of these states."""
    found: dict[str, Any] = {}

    def there() -> bool:
        found.update(user.json("status", title))
        return found["state"] in states

    wait_for(f"{title} {'/'.join(states)}", there, seconds)
    return found


def test_two_nodes_from_submit_to_the_end(alice: Product, slurm: Rig) -> None:
    alice.write(
        pair('echo "rank $HPC_RANK of $HPC_WORLD"; env; until [[ -e go ]]; do sleep 0.1; done; echo end')
    )
    done = alice("submit", "run.toml")
    assert done.stdout == "pair/1\n"
    found = until(alice, "pair", "running")
    (step,) = found["steps"]
    assert step["said"] == "scheduler"
    assert "RUNNING" in alice("status", "pair").stdout
    follow = alice.start("logs", "-f", "-n", "500", "pair")
    path = Path(found["path"])
    time.sleep(0.5)
    assert follow.poll() is None
    (path / "go").touch()
    said, problems = follow.communicate(timeout=30 * PATIENCE)
    assert follow.returncode == 0
    assert re.fullmatch(
        r"(pair/1  [A-Z]+  job 1 .*\n)+", problems
    )  # where nobody looks, a line for each state
    assert "rank 0 of 2" in said
    assert said.endswith("end\n")
    assert until(alice, "pair", "done")["steps"][0]["exit_code"] == 0
    assert "rank 1 of 2" in alice("logs", "pair", "--rank", "1", "-n", "500").stdout
    logs = "".join(log.read_text() for log in path.glob("logs/*"))
    assert "CANARY" not in logs
    assert "HPC_WORLD=2" in logs


def test_a_queued_job_says_so_and_is_cancelled(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("sleep 300", '\n[resources.ask]\nslurm = ["--hold"]\n'))
    alice("submit", "run.toml")
    assert until(alice, "small", "queued")["steps"][0]["job"]
    assert alice("cancel", "small", "--yes").stdout.endswith("cancelled\n")
    assert until(alice, "small", "cancelled")
    assert "CANCELLED" in alice("status").stdout
    assert alice("cancel", "small").stdout == "nothing was running\n"


def test_cancel_ends_a_long_job_on_two_nodes(alice: Product, slurm: Rig) -> None:
    alice.write(pair('echo "$HPC_RANK" >>began; exec sleep 300'))
    alice("submit", "run.toml")
    path = alice.run_path("pair")
    wait_for("both ranks", lambda: (path / "began").exists() and len((path / "began").read_text()) == 4)
    alice("cancel", "pair/1")
    assert until(alice, "pair", "cancelled")["steps"][0]["state"] == "cancelled"
    gone = lambda: slurm.run("squeue", "-h", "-ualice", "-o%i").stdout == ""  # noqa: E731
    wait_for("no job of alice", gone)


def test_a_failed_job_says_so_and_continue_submits_it_again(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("echo once >>tries; [[ $(wc -l <tries) == 2 ]] || exit 3"))
    done = alice("submit", "run.toml", "--wait", code=8)
    assert "error[job-failed]" in done.stderr
    failed = alice.json("status", "small")
    assert (failed["state"], failed["steps"][0]["exit_code"]) == ("failed", 3)
    alice("continue", "small")
    again = until(alice, "small", "done")
    assert again["steps"][0]["job"] != failed["steps"][0]["job"]
    assert (Path(again["path"]) / "tries").read_text() == "once\nonce\n"


def test_steps_wait_for_each_other_and_for_this_node(alice: Product, slurm: Rig) -> None:
    """A job makes `first`; `later` needs the login node behind it; training needs both."""
    assets = '\n[assets]\nfirst = { command = ["x"] }\nlater = { command = ["x"] }\n'
    alice.write(on_rig("cat {assets.first} {assets.later}", assets))
    planned = alice("plan", "run.toml").stdout
    assert "waits" in planned
    alice("submit", "run.toml")
    found = until(alice, "small", "waiting")
    assert {s["step"]: s["state"] for s in found["steps"]} == {
        "first": "done", "later": "waiting", "train": "planned",
    }  # fmt: skip
    alice("continue", "small")
    done = until(alice, "small", "done")
    made = alice("logs", "small", "train").stdout.splitlines()
    first = next(s["job"] for s in done["steps"] if s["step"] == "first")
    assert made[0] == first
    assert made[1].startswith("here-")
    alice("submit", "run.toml")
    assert until(alice, "small/2", "done")


def test_a_job_waits_for_the_job_before_it(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("cat {assets.first}", '\n[assets]\nfirst = { command = ["x"] }\n'))
    jobs = alice.json("submit", "run.toml")["jobs"]
    assert set(jobs) == {"first", "train"}
    until(alice, "small", "done")
    assert alice("logs", "small", "train").stdout.splitlines() == [jobs["first"]]


def test_a_secret_reaches_the_task_and_nothing_else(alice: Product, slurm: Rig) -> None:
    token = "hf_canary0123456789canary"
    (alice.home / "token").write_text(token + "\n")
    (alice.home / "token").chmod(0o600)
    os.chown(alice.home / "token", alice.home.stat().st_uid, alice.home.stat().st_gid)
    alice.write('[secrets]\nmy-hub = { file = "~/token" }\n', "settings.toml")
    settings = {"HPCTRAIN_SETTINGS": str(alice.folder / "settings.toml")}
    script = 'echo "${#MY_HUB} $(printf %s "$MY_HUB" | sha256sum)"; until [[ -e go ]]; do sleep 0.1; done'
    alice.write('secrets = ["my-hub"]\n' + on_rig(script))
    submitting = alice.start("submit", "run.toml", **settings)
    shown: set[str] = set()
    while submitting.poll() is None:
        shown |= arguments_with(token)
    submitting.communicate(timeout=10 * PATIENCE)
    assert submitting.returncode == 0
    path = alice.run_path("small")
    wait_for("the task", lambda: any(log.read_text().strip() for log in path.glob("logs/*")))
    assert shown | arguments_with(token) == set()
    assert hidden_in(token, [alice.home / "state"]) != []
    assert hidden_in(token, [path, *slurm.dir.glob("spool*"), slurm.dir / "state"]) == []
    (path / "go").touch()
    until(alice, "small", "done")
    said = alice("logs", "small").stdout
    assert said.startswith(f"{len(token)} {hashlib.sha256(token.encode()).hexdigest()}")
    assert hidden_in(token, [alice.home]) == [str(alice.home / "token")]


def arguments_with(text: str) -> set[str]:
    """The processes of the whole machine whose arguments hold `text`."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            said = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in said:
            found.add(said.decode(errors="replace"))
    return found


def test_a_killed_submit_is_continued_with_exactly_one_job(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("echo ran >>ran"))
    runs = {when: killed(alice, when) for when in ("created", "intent", "submitted")}
    going = [alice.start("continue", str(run)) for run in runs.values()]
    assert [process.communicate(timeout=60)[1:] and process.returncode for process in going] == [0, 0, 0]
    names = slurm.run("squeue", "-hatall", "-o%j").stdout.split()
    for when, run in runs.items():
        until(alice, str(run), "done")
        (tag,) = {e["tag"] for e in Record(run / "record.jsonl").read() if e["event"] == "intent"}
        assert len([name for name in names if name.endswith(tag)]) == 1, when
        assert (run / "ran").read_text() == "ran\n", when


def killed(alice: Product, when: str) -> Path:
    """A run whose `submit` was killed as soon as its record held this event."""
    runs = alice.home / "runs/small"
    before = set(runs.glob("[0-9]*"))
    submitting = alice.start("submit", "run.toml")
    while submitting.poll() is None:
        new = set(runs.glob("[0-9]*")) - before
        if any(e["event"] == when for run in new for e in Record(run / "record.jsonl").read()):
            os.killpg(submitting.pid, signal.SIGKILL)
            break
    submitting.communicate(timeout=10 * PATIENCE)
    (run,) = set(runs.glob("[0-9]*")) - before
    return run


def test_a_hundred_questions_in_a_minute_are_one_of_the_scheduler(alice: Product, slurm: Rig) -> None:
    """Many at once, as a script in a loop asks: they share one answer."""
    counter = alice.write('#!/bin/bash\necho >>"$HOME/asked"\nexec /usr/bin/squeue "$@"\n', "bin/squeue")
    counter.chmod(0o755)
    alice.write(on_rig("sleep 300"))
    alice("submit", "run.toml", "--set", f"policy.poll_seconds={60 * PATIENCE:.0f}")
    environ = {**alice.environ, "PATH": f"{counter.parent}:{alice.environment['PATH']}"}
    asking = Product(alice.home, alice.folder, environ, alice.before)
    with within(60):
        for _ in range(10):
            going = [asking.start("status", "small") for _ in range(10)]
            assert all(process.communicate(timeout=60) and process.returncode == 0 for process in going)
    assert (alice.home / "asked").read_text() == "\n"


def test_what_was_purged_since_is_found_before_the_queue(alice: Product) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -qm x"
    make = f"git init -q repo; cd repo; echo x >rows; git add .; {commit}"
    subprocess.run([*alice.before, "bash", "-c", make], cwd=alice.folder, env=alice.environment, check=True)
    rows = f'[assets]\ndata = {{ git = "{alice.folder}/repo" }}\n'
    alice.write(on_rig("true", rows))
    first = alice("submit", "run.toml").stdout.strip()
    found = {s["step"]: s for s in until(alice, first, "done")["steps"]}
    assert (found["data"]["origin"], found["offline"]["state"]) == ("git", "done")
    (link,) = alice.home.glob("assets/git-*")
    (link / "rows").unlink()
    refused = alice("submit", "run.toml", code=4)
    assert "rows was published and is gone" in refused.stderr
    assert f"rm {link}" in refused.stderr
    second = first.replace("/1", "/2")
    steps = {s["step"]: s for s in alice.json("status", second)["steps"]}
    assert (steps["data"]["origin"], steps["offline"]["state"], steps["train"]["state"]) == (
        "cache",
        "failed",
        "planned",
    )
    assert "intent" not in [e["event"] for e in Record(alice.run_path(second) / "record.jsonl").read()]
    link.unlink()
    alice("continue", second)
    assert until(alice, second, "done")["steps"][0]["origin"] == "git"
