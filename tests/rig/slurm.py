"""Start a Slurm of our own, run commands in it as an ordinary user, and hurt it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.patience import PATIENCE, wait_for
from tests.rig.conf import USERS, Conf

HERE = Path(__file__).parent
REPO = HERE.parents[1]
CLIENTS = ("sbatch", "squeue", "scontrol", "scancel", "sacct", "sinfo", "srun")
NEEDED = ("slurmctld", "slurmd", "munged", "unshare", "nsenter", "setpriv", "ip", "sbatch")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
BOOT_SECONDS = 20
_EVERYTHING_OF = """
stop() { kill -s "$1" $pids 2>/dev/null; }
pids=$(grep -lsz "^$1$" /proc/[0-9]*/environ | cut -d/ -f3 | grep -vx $$)
pids+=" $(for pid in $pids; do awk '/^PPid/ {print $2}' /proc/$pid/status 2>/dev/null; done | sort -u |
  while read -r parent; do ! grep -qs ^slurmstepd /proc/$parent/cmdline || echo "$parent"; done)"
stop STOP; stop KILL; :
"""
"""Kill all processes whose environment names a node, and Slurm's own that started them."""
DATABASE = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")


def missing(needed: Sequence[str] = NEEDED) -> str:
    """Why no rig can start here; empty when it can."""
    if os.geteuid() != 0:
        return "starting a Slurm needs root"
    gone = [name for name in needed if shutil.which(name, path=PATH) is None]
    if gone:
        return f"not installed: {' '.join(gone)} (run tests/setup/slurm.sh)"
    done = subprocess.run(
        ("unshare", "--pid", "--mount", "--net", "--uts", "--ipc", "--fork", "true"),
        capture_output=True, text=True, timeout=10,
    )  # fmt: skip
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode else ""


class Rig:
    """One running Slurm. `bin` is a folder for PATH whose clients speak to it from outside."""

    def __init__(self, conf: Conf | None = None, keep: Sequence[str] = ()) -> None:
        self.conf = conf or Conf()
        self.dir = Path(tempfile.mkdtemp(prefix="rig-", dir="/tmp"))
        self.dir.chmod(0o755)
        code = [str(REPO / name) for name in ("core", "plugins", "tests")]
        self.keep = sorted({*code, sys.prefix, sys.base_prefix, *keep})
        self.pid = 0
        self._boot: subprocess.Popen[bytes] | None = None

    def up(self) -> Rig:
        """Boot; raises with the log when the nodes do not come."""
        for name, text in self.conf.files(str(self.dir)).items():
            path = self.dir / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for user, uid in USERS.items():
            home = self.dir / "home" / user
            home.mkdir(parents=True)
            os.chown(home, uid, uid)
        with (self.dir / "boot.log").open("wb") as log:
            self._boot = subprocess.Popen(
                # the first word: whatever kills this Python kills the namespace as well
                ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount", "--net", "--uts",
                 "--ipc", "--fork", "--kill-child", "--propagation", "private", "/bin/bash",
                 str(HERE / "boot.sh"), str(self.dir), str(self.conf.nodes), str(self.conf.gpus),
                 *self.keep),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": PATH},
            )  # fmt: skip
        try:
            wait_for("boot", self._ready, BOOT_SECONDS + 60 * self.conf.accounting)
        except AssertionError as error:
            logs = (self.dir / "boot.log", *sorted(self.dir.glob("log/*")))
            said = "".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in logs)
            self.down()
            raise RuntimeError(f"the rig did not boot: {error}\n{said}") from None
        self.pid = int((self.dir / "ready").read_text())
        self.bin = self.clients("bin")
        return self

    def _ready(self) -> bool:
        assert self._boot is not None
        if self._boot.poll() is not None:
            raise AssertionError(f"boot.sh ended with {self._boot.returncode}")
        return (self.dir / "ready").exists()

    def down(self) -> None:
        """End it: the namespace's init dies and all its processes and mounts with it."""
        if self._boot is not None:
            self._boot.kill()
            self._boot.wait(10)
        if self.pid:
            wait_for("the rig's end", lambda: not Path(f"/proc/{self.pid}").exists(), 10)
        shutil.rmtree(self.dir, ignore_errors=True)

    def inside(self, argv: Sequence[str], user: str = "root", cwd: str | Path = "/") -> list[str]:
        """The argv that runs `argv` in the rig from outside."""
        who = []
        if user != "root":
            uid = str(USERS[user])
            who = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--uts", "--ipc", "--pid"]
        return [*enter, *who, "env", "-C", str(cwd), *argv]

    def run(
        self, *argv: str, user: str = "root", cwd: str | Path = "/", env: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command in the rig with a small environment and give back what it said."""
        home = "/root" if user == "root" else str(self.home(user))
        base = {"PATH": PATH, "HOME": home, "USER": user, "LANG": "C.UTF-8"}
        return subprocess.run(
            self.inside(argv, user, cwd), env=base | (env or {}), text=True, timeout=timeout * PATIENCE,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip

    def home(self, user: str) -> Path:
        """A user's home, visible inside and outside."""
        return self.dir / "home" / user

    def clients(self, name: str, **instead: str) -> Path:
        """A folder for PATH with Slurm's clients; `instead` replaces one by a bash body in which
        `"${real[@]}"` is the real command."""
        folder = self.dir / name
        folder.mkdir()
        for client in CLIENTS:
            enter = shlex.join(self.inside((), cwd="@"))[:-1]
            body = instead.get(client, 'exec "${real[@]}" "$@"')
            path = folder / client
            path.write_text(f'#!/bin/bash\nreal=({enter}"$PWD" /usr/bin/{client})\n{body}\n')
            path.chmod(0o755)
        return folder

    # -- faults -------------------------------------------------------------------------------

    def daemon(self, name: str) -> int:
        """The process of `slurmctld` or of a node's `slurmd.n1`, by its number inside."""
        return int((self.dir / f"{name}.pid").read_text())

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a daemon."""
        done = self.run("kill", f"-{number.value}", str(self.daemon(name)))
        assert done.returncode == 0, done.stderr

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The controller answers nobody while this lasts."""
        self.send("slurmctld", signal.SIGSTOP)
        try:
            yield
        finally:
            self.send("slurmctld", signal.SIGCONT)

    def kill_node(self, node: str) -> None:
        """The node's daemon dies at once."""
        self.send(f"slurmd.{node}", signal.SIGKILL)

    def lose_node(self, node: str) -> None:
        """The node dies at once, with all that runs on it: no daemon answers, its connections are reset."""
        self.kill_node(node)
        name = f"SLURMD_NODENAME={node}".encode()
        done = self.run("bash", "-c", _EVERYTHING_OF, "-", name.decode(), f"slurmd.{node}")
        assert done.returncode == 0, done.stderr

    def start_node(self, node: str) -> None:
        """Bring a node back and wait until it is idle."""
        assert self.run("slurmd", "-N", node).returncode == 0
        wait_for(f"{node} is idle", lambda: self.run("sinfo", "-hn", node, "-o%T").stdout.strip() == "idle")

    def forget(self) -> None:
        """The controller starts again and knows no job: what MinJobAge does after minutes."""
        number = self.daemon("slurmctld")
        self.send("slurmctld", signal.SIGKILL)
        wait_for("its end", lambda: self.run("kill", "-0", str(number)).returncode != 0)
        assert self.run("slurmctld", "-c").returncode == 0
        idle = str(self.conf.nodes)
        wait_for("idle nodes", lambda: self.run("sinfo", "-hpbatch", "-tidle", "-o%D").stdout.strip() == idle)
