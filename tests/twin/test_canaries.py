"""Tokens on replicas of the clusters: another user, a scheduler and a disk never see one, the task does."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.canaries import SECRETS, SETTINGS, Canaries, forms
from tests.patience import wait_for
from tests.twin.fixtures import Start
from tests.twin.life import Twin, kept
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

CLUSTERS = (
    "olivia",
    "alps",
    *(("frontier", "isambard", "leonardo") if os.environ.get("HPCTRAIN_SOAK") else ()),
)
"""Of the five, two in every run: a walk takes minutes."""
OWN = (".bash_profile", "mine.token", ".netrc")
"""Files of the home in which the user keeps them."""

LOOK = """
import os, select, sys
tokens = [bytes.fromhex(word) for word in sys.stdin.readline().split()]
leaked, looked = set(), 0
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0.005)[0]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                text = open(f"/proc/{pid}/{name}", "rb").read()
            except OSError:
                continue
            looked += name == "cmdline"
            leaked.update(at for at, token in enumerate(tokens) if token in text)
print(looked, *sorted(leaked))
"""
"""What another user reads of all processes while the walk goes on; tokens come in by stdin."""
SEARCH = """
import os, stat, sys
tokens = [bytes.fromhex(word) for word in sys.stdin.readline().split()]
since, *apart = sys.stdin.readline().split()
for at, folders, names in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(at, f) not in ("/proc", "/sys", *apart)]
    for path in (os.path.join(at, name) for name in names):
        try:
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_mtime > float(since) and status.st_size < 1 << 26:
                if any(token in open(path, "rb").read() for token in tokens):
                    print(path)
        except OSError:
            pass
"""
"""Every file of a machine that was written since, as root reads it."""


def with_secrets(twin: Twin, canaries: Canaries) -> User:
    """alice with a secret in each place where users have replica."""
    user, secret = User(twin, folder="canaries"), canaries.values
    home = twin.site.home("alice")
    profile = {"HF_TOKEN": "huggingface", "SHELL_TOKEN": "variable", "AWS_SECRET_ACCESS_KEY": "bystander"}
    texts = {
        ".bash_profile": "".join(f"export {name}={secret[of]}\n" for name, of in profile.items()),
        "mine.token": f"{secret['file']}\n",
        ".netrc": f"machine api.wandb.ai login user password {secret['netrc']}\n",
        ".config/hpctrain/settings.toml": SETTINGS,
    }
    twin.sh(f"umask 077; mkdir -p {home}/.config/hpctrain; cd {home}; touch {' '.join(OWN)}")
    for name, text in texts.items():
        twin.write(f"{home}/{name}", text)
    return user


def run_file(name: str, script: str) -> str:
    """A run of two nodes that starts this line of bash and needs every token."""
    text = (EXAMPLE / "wait.toml").read_text().replace('"wait"', f'"{name}"')
    argv = json.dumps(["bash", "-c", script])
    return text.replace('["sleep", "60"]', argv).replace("\n\n[resources]", f"{SECRETS}\n[resources]", 1)


def answer_of(twin: Twin, script: str, canaries: Canaries, *more: str, node: str = "") -> str:
    """What a program on a machine of the twin prints that is given the secrets by stdin."""
    words = " ".join(form.hex() for value in canaries.values.values() for form in forms(value))
    argv = twin.inside((sys.executable, "-I", "-c", script), node=node, login=False)
    lines = "\n".join((words, " ".join(more), ""))
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def watched(twin: Twin, canaries: Canaries, places: list[str]) -> Iterator[None]:
    """Another user of the project reads all that the kernel shows of processes, on every machine."""
    words = " ".join(form.hex() for value in canaries.values.values() for form in forms(value))
    watchers = [
        subprocess.Popen(
            twin.inside((sys.executable, "-I", "-c", LOOK), "bob", "/", node, login=False),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for node in places
    ]  # fmt: skip
    for watcher in watchers:
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        watcher.stdin.write(f"{words}\n")
        watcher.stdin.flush()
        assert watcher.stdout.readline() == "begun\n"
    try:
        yield
    finally:
        answers = [watcher.communicate("\n", timeout=60)[0].split() for watcher in watchers]
    for looked, *leaked in answers:
        assert int(looked) > 100
        assert leaked == []


def walked(user: User, canaries: Canaries) -> list[str]:
    """All that is printed, by us and by the scheduler, of runs that end in every way."""
    printed: list[str] = []
    account = user.twin.site.overlay.account
    on = ("--on", user.twin.cluster, "--account", account)

    def typed(*words: str) -> int:
        done = user.hpctrain(*words)
        printed.extend((done.stdout, done.stderr))
        return done.returncode

    user.put("run.toml", run_file("well", canaries.program()))
    for command in ("check run.toml", "plan run.toml --json", "plan run.toml --full"):
        assert typed(*command.split(), *on) == 0, printed[-2:]
    user.submit("--debug")
    user.until("done", seconds=240)
    log = user.hpctrain("logs", "well").stdout
    assert canaries.received(log), log
    for command in ("status well", "diagnose well", "runs", "report well -o r.html"):
        typed(*command.split())
    user.put("run.toml", run_file("fails", "exit 3"))
    user.submit()
    wait_for("a failure", lambda: user.status()["state"] == "failed", 120)
    typed("diagnose", "fails")
    typed("continue", "fails", "--debug")
    typed("cancel", "fails")
    for name in ("cancelled", "ended"):
        user.put("run.toml", run_file(name, "sleep 300"))
        row = user.step(user.submit())
        user.until("running")
        commands = ("scontrol show job -dd", "squeue -o %all", f"scontrol write batch_script {row['job']} -")
        printed.extend(user.twin.run(*words.split()).stdout for words in commands)
        if name == "ended":  # by an operator
            user.twin.run("scancel", "--signal=KILL", "--full", row["job"])
            wait_for("its end", lambda: user.status()["state"] in ("failed", "cancelled"), 120)
        typed("cancel", name)
    user.put("run.toml", run_file("ejected", "true"))
    assert typed("eject", "run.toml", "--out", "ejected", *on) == 0, printed[-2:]
    refused = f"{user.folder}/refused"
    user.twin.sh(f"mkdir -p {refused}")
    user.put("refused/sbatch", "#!/bin/sh\necho 'sbatch: error: no' >&2; exit 1\n")
    user.twin.sh(f"chmod +x {refused}/sbatch")
    failed = user.twin.run(
        "bash", "-c", f"PATH={refused}:$PATH; bash {user.folder}/ejected/run.sh", user="alice"
    )
    assert failed.returncode != 0
    printed.extend((failed.stdout, failed.stderr))
    return printed


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_token_is_left_anywhere(name: str, twin: Start) -> None:
    replica, canaries = twin(name), Canaries()
    began = replica.run("date", "+%s").stdout.strip()
    user = with_secrets(replica, canaries)
    up = replica.run("ls", "/run/twin").stdout.split()
    places = ["", *(host.name for host in replica.site.hosts if host.name in up)]
    assert len(places) > 2
    with watched(replica, canaries, places):
        printed = walked(user, canaries)
    text = "\n".join(printed)
    assert "JobId=" in text
    assert [key for key, value in canaries.values.items() for f in forms(value) if f.decode() in text] == []
    token_files = {f"{replica.site.home('alice')}/{file}" for file in OWN}
    written = {
        place: set(answer_of(replica, SEARCH, canaries, began, *kept(), node=place).split())
        for place in places
    }
    assert written.pop("") == token_files
    assert not any(files - token_files for files in written.values()), written
    assert not [value for value in canaries.values.values() if value in replica.said()]
