"""A twin keeps to itself, starts and ends quickly, and is the site that its facts describe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE, wait_for, within
from tests.twin import site_file
from tests.twin.fixtures import Start
from tests.twin.life import RUNS, NoTwin, Twin, clean, kept
from tests.twin.site_file import PROJECT_GID, ROOT, USERS
from tests.twin.storage import folders

pytestmark = pytest.mark.twin


@pytest.fixture
def second(twin: Start) -> Iterator[Twin]:
    """Another twin of the same cluster, beside the session's."""
    twin("frontier")
    other = Twin(f"second-{os.getpid()}", "frontier")
    with within(5):
        other.up(tied=True)
    yield other
    other.down()


def picture() -> tuple[str, ...]:
    """What this machine has of networks and mounts."""
    return tuple(said(*argv) for argv in (("ip", "-o", "link"), ("findmnt", "-rn")))


def processes() -> dict[str, tuple[str, str]]:
    """Parent and start of every process."""
    rows = (line.split(maxsplit=2) for line in said("ps", "-eo", "pid=,ppid=,lstart=").splitlines())
    return {pid: (parent, start) for pid, parent, start in rows}


def family(twin: Twin) -> set[tuple[str, str]]:
    """All processes of a twin, on the login node and the others, with their starts."""
    rows, inside = processes(), {str(twin.pid)}
    while more := {pid for pid, (parent, _) in rows.items() if parent in inside} - inside:
        inside |= more
    return {(pid, rows[pid][1]) for pid in inside}


def said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout


def test_two_at_once_never_meet(twin: Start, second: Twin) -> None:
    first = twin("frontier")
    done = second.run(
        "sbatch", "--parsable", "-Aabc123", "-t1", "-Jonlyhere", "--hold", "--wrap=true", user="alice"
    )
    assert done.stdout.strip().isdigit(), done.stderr
    assert "onlyhere" in second.sh("squeue -hatall -o%j")
    assert "onlyhere" not in first.sh("squeue -hatall -o%j")
    assert str(first.dir) not in second.run("cat", "/proc/mounts").stdout
    pids = second.run("ps", "-eo", "comm").stdout
    assert pids.count("slurmctld") == pids.count("munged") == 1
    with within(1.5):
        second.down()
    assert not second.alive()
    assert first.sh("sinfo -h -o %D").split()


def test_a_name_is_up_only_once(twin: Start) -> None:
    one = twin("frontier")
    with pytest.raises(NoTwin, match="is up already"):
        Twin(one.name, "frontier").up()
    assert one.alive()


def test_nothing_of_the_machine_is_seen(twin: Start) -> None:
    one = twin("frontier")
    marker = Path(f"/dev/shm/outside-{os.getpid()}")
    marker.touch()
    try:
        assert marker.name not in one.run("ls", "/dev/shm").stdout
        assert "vda" not in one.run("ls", "/dev").stdout
        assert set(one.run("ls", "/tmp").stdout.split()) <= {
            p.split("/")[2] for p in kept() if p.startswith("/tmp/")
        }
    finally:
        marker.unlink()
    done = one.run("bash", "-c", f"touch {ROOT}/written 2>&1")
    assert "Read-only file system" in done.stdout


def test_nothing_listens_outside(twin: Start) -> None:
    twin("frontier")
    twin("olivia")
    ports = {int(line.split()[1].rpartition(":")[2], 16) for line in _sockets()}
    assert not ports & {443, 3128, 6817, 6818, 8080}


def _sockets() -> list[str]:
    lines = [line for f in ("tcp", "tcp6") for line in Path(f"/proc/net/{f}").read_text().splitlines()[1:]]
    return [line for line in lines if line.split()[3] == "0A"]


INTERRUPTED = """
import pathlib, time
from tests.twin.fixtures import twin

def test_that_is_killed(twin):
    one = twin("frontier")
    one.sh("srun -Aabc123 -t1 -N2 true && sbatch -Aabc123 -t5 -N2 --wrap 'srun sleep 300'")
    pathlib.Path(__file__).with_name("name").write_text(one.name)
    time.sleep(600)
"""


def test_pytest_killed_in_the_middle_leaves_nothing(twin: Start, tmp_path: Path) -> None:
    twin("frontier")
    before = picture()
    (tmp_path / "test_it.py").write_text(INTERRUPTED)
    env = {**os.environ, "PYTHONPATH": ":".join([str(ROOT), *sys.path])}
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py"))
    child = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
    name = tmp_path / "name"
    wait_for("its twin", lambda: name.exists() or child.poll() is not None, 60)
    orphan = Twin(name.read_text())
    inside = family(orphan)
    assert len(inside) > 10
    child.send_signal(signal.SIGKILL)
    child.wait(10 * PATIENCE)
    wait_for("its end", lambda: not orphan.alive(), 10)  # no process holds its lock
    assert picture() == before
    wait_for("their end", lambda: not inside & {(pid, start) for pid, (_, start) in processes().items()}, 5)
    assert orphan.dir.exists()
    clean()  # as the next `twin up` does
    assert not orphan.dir.exists()


def test_a_twin_that_cannot_boot_says_why(
    twin: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin("frontier")
    monkeypatch.setattr("tests.twin.slurmconf.HEAD", "Nonsense=1\n")
    with pytest.raises(NoTwin, match=r"(?s)did not boot.*Nonsense"):
        Twin(f"broken-{os.getpid()}", "frontier").up(tied=True)
    assert not (RUNS / f"broken-{os.getpid()}").exists()


@pytest.mark.parametrize("name", site_file.names())
def test_the_internet_is_where_the_facts_say(name: str, twin: Start) -> None:
    one = twin(name)
    assert "default via" in one.run("ip", "route").stdout
    for host in one.site.hosts:
        began = time.monotonic()
        done = one.run(*connect("192.0.2.1", 80), node=host.name)
        said = json.loads(done.stdout)
        if host.wide:
            assert said != "Network is unreachable"
        else:
            assert said == "Network is unreachable"
            assert time.monotonic() - began < 2 * PATIENCE
    proxy = one.site.overlay.proxy
    if proxy:
        node = one.site.hosts[0].name
        for address in proxy.names:
            assert json.loads(one.run(*connect(address, proxy.port), node=node).stdout) == "connected"


def connect(host: str, port: int) -> tuple[str, ...]:
    """A command that prints how a connection ended."""
    code = (
        "import socket, json\n"
        f"try: socket.create_connection(({host!r}, {port}), 1); said = 'connected'\n"
        "except OSError as error: said = error.strerror or str(error)\n"
        "print(json.dumps(said))"
    )
    return ("python3", "-c", code)


@pytest.mark.parametrize("name", site_file.names())
def test_the_modules_of_the_facts_load(name: str, twin: Start) -> None:
    one = twin(name)
    facts = one.site.cluster
    wanted = [*(facts.modules.build if facts.modules else ()), *facts.network.modules]
    listed = one.sh("module --terse avail 2>&1")
    for module in one.site.overlay.module:
        assert module.name in listed
    for word in wanted:
        one.sh("module reset 2>/dev/null" if word == "reset" else f"module is-avail {word}")
    if wanted:
        loads = " && ".join("module reset" if w == "reset" else f"module load {w}" for w in wanted)
        assert "error" not in one.sh(f"{{ {loads}; }} 2>&1; module list 2>&1").lower()
    done = one.run("bash", "-c", "module load nonsense/1.0", user="alice")
    assert done.returncode == 1


@pytest.mark.parametrize("name", site_file.names())
def test_users_have_their_folders(name: str, twin: Start) -> None:
    one = twin(name)
    for folder in folders(one.site, local=False):
        if not (folder.uid or folder.gid):
            continue
        file = f"{folder.path}/file-{os.getpid()}"
        owner, other = ("bob", "alice") if folder.uid == USERS["bob"] else ("alice", "bob")
        one.sh(f"touch {file}", user=owner)
        shared = folder.gid == PROJECT_GID
        assert shared == (one.run("test", "-e", file, user=other).returncode == 0), folder
        if folder.size:
            size, inodes = one.sh(f"stat -f -c '%b*%S %c' {folder.path}").split()
            blocks, _, block = size.partition("*")
            assert abs(int(blocks) * int(block) - folder.size) < 2**20
            assert folder.inodes in (0, int(inodes))
    for folder in folders(one.site, local=True):
        assert one.run("test", "-d", folder.path, node=one.site.hosts[0].name).returncode == 0, folder


def test_limits_are_enforced_at_submission(twin: Start) -> None:
    def refused(name: str, *words: str) -> str:
        done = twin(name).run("sbatch", "--parsable", "--hold", "--wrap=true", *words, user="alice")
        assert done.returncode != 0, words
        return done.stderr

    account = "-Aabc123"
    assert "Invalid account" in refused("frontier", "-t10")
    assert "Invalid account" in refused("frontier", "-t10", "-Aothers")
    assert "time limit" in refused("frontier", "-t121", account)
    assert "ime limit" in refused("frontier", "-pextended", "-t25:00:00", account)
    assert "Invalid qos" in refused("frontier", "-t10", "--qos=nonsense", account)
    assert "time limit" in refused("olivia", "-Ann9999k", "--qos=devel", "-t3:00:00")
    assert "--mem=0 is not allowed" in refused("alps", "--mem=0", "-t10")
    assert "GPUs is mandatory" in refused("isambard", "-t10")
    assert "ode count" in refused("leonardo", "-AEUHPC_D00_001", "-plrd_all_serial", "-N2", "-t10")
    one = twin("frontier")
    line = "sbatch --parsable --hold -Aabc123 --qos=debug -t10 --wrap=true"
    first = one.sh(line).strip()
    assert "job submit limit" in one.run("bash", "-c", line, user="alice").stderr
    one.sh(f"scancel {first}")
    one.sh(line)
