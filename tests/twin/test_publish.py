"""Twelve checkpoints published from a twin: Slurm converts, the login node uploads, the hub misbehaves."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from tests.patience import wait_for
from tests.twin.fixtures import Start
from tests.twin.site_file import ROOT
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

STEPS = range(100, 1300, 100)
REPO, RAW = "alice/exp", "alice/neox-ckpt-exp"
ENV = {
    "HF_TOKEN": "hf_twin",
    "HF_HUB_DISABLE_XET": "1",
}
MAKE = """
from pathlib import Path
from tests.checkpoints.hub.test_publish import experiment
experiment(Path("exp"))
"""
LISTED = """
import json, sys
from huggingface_hub import HfApi
api = HfApi()
names = [b.name for b in api.list_repo_refs(sys.argv[1]).branches if b.name != "main"]
print(json.dumps({n: api.list_repo_files(sys.argv[1], revision=n) for n in names}))
"""
KILLED = """
hpctrain publish exp {repo} >said 2>&1 &
pid=$!
for i in $(seq 1200); do
    [ "$(cat {book} 2>/dev/null | wc -l)" -ge {lines} ] && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -9 $pid
wait $pid
"""


@pytest.fixture
def user(twin: Start, request: pytest.FixtureRequest) -> User:
    """Somebody with an experiment of twelve checkpoints."""
    one = twin("frontier")
    wait_for("the hub", lambda: one.run("curl", "-sS", "https://huggingface.co/").returncode == 0)
    one.run("truncate", "-s0", "/run/twin/hub.log", "/run/twin/hub.script")
    found = User(one, folder=request.node.name)
    python(found, MAKE, PYTHONPATH=str(ROOT))
    return found


def python(user: User, code: str, *words: str, **env: str) -> str:
    """The Python that hpctrain runs with, as the user."""
    argv = (sys.executable, "-c", code, *words)
    done = user.twin.run(*argv, user=user.name, cwd=user.folder, timeout=180, env={**ENV, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(user: User, repository: str) -> dict[str, set[str]]:
    """Revision -> names of files, as the hub lists them."""
    found: dict[str, list[str]] = json.loads(python(user, LISTED, repository))
    return {name: set(files) for name, files in found.items()}


def commits(user: User) -> Counter[str]:
    """How often each revision was written, as the hub logged it."""
    lines = [line.split() for line in user.twin.run("cat", "/run/twin/hub.log").stdout.splitlines()]
    return Counter(w[1] for w in lines if w[0] == "POST" and "/commit/" in w[1] and w[-1] == "-")


def test_twelve_checkpoints_from_their_jobs_to_the_hub(user: User) -> None:
    here = ("--on", "frontier", "--account", user.twin.site.overlay.account)
    done = user.hpctrain("publish", "exp", REPO, "--job", *here, "--json", env=ENV, timeout=300)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (set(said["jobs"]), said["waiting"]) == ({f"convert-{n}" for n in STEPS}, ["publish"])
    count = "ls -d exp-hf/global_step*/conversion.json 2>/dev/null | wc -l"
    made = f"cd {user.folder} && {count}"
    wait_for("the jobs", lambda: int(user.twin.sh(made)) == len(STEPS), seconds=300)

    spoiled = "~commit 429 1\n~preupload 429 1\n~^PUT drop 1000\n"
    user.twin.write("/run/twin/hub.script", spoiled, user="root")
    book = "exp-hf/alice--exp.jsonl"
    script = KILLED.format(repo=REPO, book=book, lines=5)
    exports = "".join(f"export {k}={v}\n" for k, v in ENV.items())
    user.twin.sh(f"cd {user.folder}\n{exports}{script}true")
    first = user.twin.sh(f"cat {user.folder}/{book}").splitlines()
    assert 5 <= len(first) < 24

    user.run = (said["run"],)
    done = user.hpctrain("continue", said["run"], env=ENV, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in user.twin.sh(f"cat {user.folder}/{book}").splitlines()]
    done_rows = {(r["step"], r["repository"]) for r in rows if r["event"] in ("uploaded", "exists")}
    assert done_rows == {(n, repository) for n in STEPS for repository in (REPO, RAW)}
    assert user.twin.run("cat", "/run/twin/hub.script").stdout == ""
    assert (len(commits(user)), set(commits(user).values())) == (24, {1})
    assert user.status()["state"] == "done"
    assert set(listed(user, REPO)) == set(listed(user, RAW)) == {f"global_step{n}" for n in STEPS}
    assert user.twin.sh(f"grep -rls hf_twin {said['path']} {user.folder}/exp-hf || true") == ""


def test_the_two_switches_differ_in_the_listing(user: User) -> None:
    for repository, switch in (("alice/raw", "--upload-neox-only"), ("alice/models", "--skip-neox-upload")):
        done = user.hpctrain("publish", "exp", repository, switch, env=ENV, timeout=300)
        assert done.returncode == 0, done.stderr
    raw, models = listed(user, "alice/neox-ckpt-raw"), listed(user, "alice/models")
    assert set(raw) == set(models) == {f"global_step{n}" for n in STEPS}
    assert all(any(f.endswith("model_states.pt") for f in files) for files in raw.values())
    assert all({"config.json", "model.safetensors"} <= files for files in models.values())
    assert not any(f.endswith(".pt") for files in models.values() for f in files)
    log = user.twin.run("cat", "/run/twin/hub.log").stdout
    assert not [line for line in log.splitlines() if " /api/models/alice/raw/" in line and "commit" in line]
    assert "/api/models/alice/neox-ckpt-models/commit" not in log
