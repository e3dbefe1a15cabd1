"""What can go wrong on a site, as levers: each is one function of a twin and a few words."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.patience import wait_for
from tests.twin.life import NoTwin, Twin
from tests.twin.storage import Folder, folders

LOST = """\
#!/bin/bash
# sbatch as before, but once, when told, its answer is lost after the job was accepted.
mv /run/twin/once/lose-answer "/run/twin/once/.$$" 2>/dev/null || exec /usr/bin/sbatch "$@"
/usr/bin/sbatch "$@" >/dev/null 2>&1
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
"""


def ctld_freeze(twin: Twin, seconds: str = "60") -> None:
    """The controller answers nobody for so many seconds."""
    line = 'kill -STOP "$1"; sleep "$2"; kill -CONT "$1"'
    _must(twin, "bash", "-c", f"({line}) </dev/null >/dev/null 2>&1 &", "_", _controller(twin), seconds)
    wait_for("the freeze", lambda: "T" in _must(twin, "ps", "-o", "stat=", "-p", _controller(twin)), 5)


def node_kill(twin: Twin, node: str) -> None:
    """The node dies at once, with every process on it."""
    number = _must(twin, "cat", f"/run/twin/{node}").strip()
    _must(twin, "kill", f"-{signal.SIGKILL.value}", number)
    wait_for(f"the end of {node}", lambda: twin.run("kill", "-0", number).returncode != 0, 10)


def node_start(twin: Twin, node: str) -> None:
    """Switch a dead node on again and wait until it is idle."""
    _must(twin, "/bin/bash", "/twin/node-up.sh", node)
    wait_for(f"{node} is idle", lambda: twin.run("sinfo", "-hn", node, "-o%T").stdout.split()[0] == "idle")


def drain(twin: Twin, node: str) -> None:
    """The node takes no new jobs."""
    _must(twin, "scontrol", "update", f"nodename={node}", "state=drain", "reason=fault")


def resume(twin: Twin, node: str) -> None:
    """Take a drained node back."""
    _must(twin, "scontrol", "update", f"nodename={node}", "state=resume")


def lose_answer(twin: Twin) -> None:
    """The next sbatch is accepted, and its caller hears only that the line broke."""
    _put(twin, "/usr/local/bin/sbatch", LOST)
    _must(twin, "chmod", "755", "/usr/local/bin/sbatch")
    _must(twin, "mkdir", "-p", "-m", "777", "/run/twin/once")
    _must(twin, "touch", "/run/twin/once/lose-answer")


def forget(twin: Twin) -> None:
    """The controller starts again and knows no job: what MinJobAge does after minutes."""
    number = _controller(twin)
    _must(twin, "kill", f"-{signal.SIGKILL.value}", number)
    wait_for("its end", lambda: twin.run("kill", "-0", number).returncode != 0, 10)
    _must(twin, "slurmctld", "-c")
    wait_for("the controller", lambda: "UP" in twin.run("scontrol", "ping").stdout)


def requeue(twin: Twin, job: str) -> None:
    """Queue a running job again under its id, and let it start without Slurm's two minutes."""
    _must(twin, "scontrol", "requeue", job)
    start_now(twin, job)


def start_now(twin: Twin, job: str) -> None:
    """Start a job that was queued again; its earlier attempt must have left its nodes."""
    wait_for("the job waits", lambda: "JobState=PENDING" in twin.run("scontrol", "show", "job", job).stdout)
    left = ("pgrep", "-f", rf"slurmstepd: \[{job}\.")
    wait_for("the earlier attempt's end", lambda: not twin.run(*left).stdout)
    # a node refuses what it is told to start in the second in which it was told to stop
    _must(twin, "scontrol", "update", f"jobid={job}", "starttime=now+2seconds")


def preempt(twin: Twin, seconds: str = "5") -> None:
    """Somebody more urgent takes all nodes for so many seconds; their jobs are queued again."""
    count = str(sum(1 for host in twin.site.hosts if host.place.name == "compute"))
    ask = ("--partition=urgent", f"--nodes={count}", "--exclusive", "--time=5", "--job-name=urgent")
    _must(twin, "sbatch", "--parsable", *ask, "--output=/dev/null", f"--wrap=sleep {seconds}", cwd="/twin")


def proxy_cut(twin: Twin) -> None:
    """The proxy is gone."""
    _must(twin, "pkill", "-x", "tinyproxy")


def proxy_mend(twin: Twin) -> None:
    """The proxy is back."""
    _must(twin, "tinyproxy", "-c", "/etc/tinyproxy.conf")


def quota_fill(twin: Twin, role: str, what: str = "bytes") -> None:
    """The quota of alice's role is used up, its `bytes` or its `inodes`: it shrinks to what is there."""
    folder = _file_system(twin, role)
    if what == "inodes":
        used = _must(twin, "df", "--output=iused", folder.path).split()[1]
        option = f"nr_inodes={used}"
    else:
        used = _must(twin, "df", "--output=used", "--block-size=1", folder.path).split()[1]
        option = f"size={max(int(used), 4096)}"
    _must(twin, "mount", "-o", f"remount,{option}", folder.path)


def quota_free(twin: Twin, role: str) -> None:
    """It has room again."""
    folder = _file_system(twin, role)
    _must(twin, "mount", "-o", f"remount,{folder.options}", folder.path)


def purge_clock(twin: Twin, days: str) -> None:
    """The site's purge runs as if it were so many days later."""
    for facts in twin.site.cluster.storage.values():
        if facts.purge_days is None:
            continue
        left = facts.purge_days - int(days)
        age = ["-mtime", f"+{left - 1}"] if left > 0 else []
        for user in ("alice", "bob"):
            path = twin.site.fill(facts.path, user)
            twin.run("find", path, "-type", "f", *age, "-delete")


def corrupt(twin: Twin, path: str) -> None:
    """One byte in the middle of a file is another one; its size and times stay."""
    code = (
        "import os, sys; p = sys.argv[1]; s = os.stat(p); f = open(p, 'r+b'); f.seek(s.st_size // 2); "
        "b = f.read(1); f.seek(-1, 1); f.write(bytes([b[0] ^ 255])); f.close(); "
        "os.utime(p, ns=(s.st_atime_ns, s.st_mtime_ns))"
    )
    _must(twin, "python3", "-c", code, path)


def hub_429(twin: Twin, seconds: str = "1") -> None:
    """The hub's next answer: too many requests, try again after so many seconds."""
    _misbehave(twin, f"429 {seconds}")


def hub_503(twin: Twin) -> None:
    """The hub's next answer: not available."""
    _misbehave(twin, "503")


def hub_401(twin: Twin) -> None:
    """The hub's next answer: who are you?"""
    _misbehave(twin, "401")


def hub_short(twin: Twin, count: str = "1000") -> None:
    """The hub's next file ends after so many bytes, although it announced all."""
    _misbehave(twin, f"short {count}")


FAULTS: dict[str, Callable[..., None]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        ctld_freeze, node_kill, node_start, drain, resume, lose_answer, forget, requeue, preempt, proxy_cut,
        proxy_mend, quota_fill, quota_free, purge_clock, corrupt, hub_429, hub_503, hub_401, hub_short,
    )
}  # fmt: skip


def fault(twin: Twin, name: str, *words: str) -> None:
    """Pull a lever by its name."""
    if name not in FAULTS:
        raise NoTwin(f"no such fault: {name} (there are {' '.join(FAULTS)})")
    try:
        FAULTS[name](twin, *words)
    except TypeError:
        raise NoTwin(f"{name}: {FAULTS[name].__doc__} It takes other words than {words}") from None


def _controller(twin: Twin) -> str:
    return _must(twin, "cat", "/run/slurmctld.pid").strip()


def _file_system(twin: Twin, role: str) -> Folder:
    path = twin.site.fill(twin.site.cluster.storage[role].path, "alice") + "/"
    found = (f for f in folders(twin.site, local=False) if f.size and path.startswith(f"{f.path}/"))
    return max(found, key=lambda folder: len(folder.path))


def _misbehave(twin: Twin, line: str) -> None:
    said = twin.run("cat", "/run/twin/hub.script").stdout
    _put(twin, "/run/twin/hub.script", f"{said}{line}\n")


def _put(twin: Twin, path: str, text: str) -> None:
    twin.write(path, text, user="root")


def _must(twin: Twin, *argv: str, cwd: str = "") -> str:
    done = twin.run(*argv, cwd=cwd)
    if done.returncode:
        raise NoTwin(f"{' '.join(argv)[:200]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
