"""A twin's life: boot it, run commands in it as one of its users, end it; all waits are bounded.

A running twin holds the lock of its folder: every process in it has inherited it. So a folder whose
lock is free is what a dead twin left, whoever killed it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.patience import PATIENCE, wait_for
from tests.twin import captured, job_memory, rootfs, tree
from tests.twin.site_file import PROJECT_GID, ROOT, USERS, Site, load

RUNS = rootfs.CACHE / "run"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOOT_SECONDS = 60
TORCH = "/opt/twin/torch"
CAPTURE = "capture.json"


class NoTwin(Exception):
    """A twin did not boot, or is not there; the message says why."""


class Twin:
    """The twin `name`, by default of the cluster of that name; it need not be up.

    With a `capture` it is what that machine answered, on the frame of its cluster's facts.
    """

    def __init__(self, name: str, cluster: str = "", capture: Path | None = None) -> None:
        self.name = name
        self.dir = RUNS / name
        self._capture = capture
        file = self.dir / "cluster"
        self.cluster = cluster or (file.read_text() if file.exists() else name)

    @property
    def site(self) -> Site:
        """Facts and overlay."""
        kept_capture = self.dir / CAPTURE
        return captured.site(kept_capture) if kept_capture.exists() else load(self.cluster)

    @property
    def pid(self) -> int:
        """Its init's number outside; 0 when it is not up."""
        ready = self.dir / "ready"
        return int(ready.read_text()) if ready.exists() and self.alive() else 0

    def alive(self) -> bool:
        """Does any process of it live?"""
        try:
            with (self.dir / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def up(self, *, tied: bool = False, powered_down: int = 0, accounting: bool = False) -> Twin:
        """Boot; `tied`: it dies with this process. Cleans what dead twins left."""
        root = rootfs.ensure()
        step_mb = job_memory.step_mb(torch_python())
        with self._claimed() as lock:
            (self.dir / "cluster").write_text(self.cluster)
            if self._capture:
                shutil.copyfile(self._capture, self.dir / CAPTURE)
            files = self.dir / "site"
            tree.write(
                self.site, files, root, kept(), powered_down=powered_down,
                accounting=accounting or bool(self.site.overlay.accounting), step_mb=step_mb,
            )  # fmt: skip
            if torch := torch_prefix():
                (files / TORCH[1:]).parent.mkdir(parents=True)
                (files / TORCH[1:]).symlink_to(torch)
            boot = self._boot(root, lock.fileno(), tied)
        try:
            wait_for("boot", lambda: self._ready(boot), BOOT_SECONDS)
        except AssertionError as error:
            said = self.said()
            self.down()
            raise NoTwin(f"the twin of {self.cluster} did not boot: {error}\n{said}") from None
        return self

    @contextlib.contextmanager
    def _claimed(self) -> Iterator[IO[str]]:
        """The lock of this twin's folder, taken while nobody else cleans or claims."""
        RUNS.mkdir(parents=True, exist_ok=True)
        with (rootfs.CACHE / "up.lock").open("w") as all_twins:
            fcntl.flock(all_twins, fcntl.LOCK_EX)
            if self.alive():
                raise NoTwin(f"{self.name} is up already")
            clean()
            self.dir.mkdir()
            lock = (self.dir / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
        with lock:
            yield lock

    def _boot(self, root: Path, lock: int, tied: bool) -> subprocess.Popen[bytes]:
        tie = ("setpriv", "--pdeathsig", "KILL") if tied else ()
        with (self.dir / "boot.log").open("wb") as log:
            boot = subprocess.Popen(
                (*tie, "unshare", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child",
                 "--propagation", "private", "/bin/bash", str(tree.HERE / "boot.sh"), str(self.dir),
                 str(root)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": PATH}, pass_fds=(lock,),
                start_new_session=True,
            )  # fmt: skip
        (self.dir / "pid").write_text(str(boot.pid))
        self._process = boot
        return boot

    def _ready(self, boot: subprocess.Popen[bytes]) -> bool:
        if boot.poll() is not None:
            raise AssertionError(f"its init ended with {boot.returncode}")
        return (self.dir / "ready").exists()

    def said(self) -> str:
        """The ends of all its logs."""
        logs = (self.dir / "boot.log", *sorted(self.dir.glob("log/*")))
        texts = ((log.name, log.read_text(errors="replace")[-1500:]) for log in logs if log.is_file())
        return "".join(f"== {name}\n{text}" for name, text in texts if text)

    def down(self) -> None:
        """End it: its init dies, and all its processes, mounts and networks with it."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int((self.dir / "pid").read_text()), 9)
            wait_for(f"the end of {self.name}", lambda: not self.alive(), 10)
        if process := getattr(self, "_process", None):
            process.wait(10 * PATIENCE)
        shutil.rmtree(self.dir, ignore_errors=True)

    def inside(
        self, argv: Sequence[str], user: str = "root", cwd: str = "", node: str = "", login: bool = True
    ) -> list[str]:
        """The argv that runs `argv` in the twin: on the login node, or on `node` (an address of its
        own); `login` reads /etc/profile first, as logging in does."""
        pid = self.pid
        if not pid:
            raise NoTwin(f"{self.name} is not up (twin up {self.name})")
        enter = ["nsenter", f"--target={pid}", "--mount", "--net", "--uts", "--ipc", "--pid"]
        if node:
            inner = self.run("cat", f"/run/twin/{node}").stdout.strip()
            child = self.run("pgrep", "-P", inner).stdout.strip()
            enter += ["nsenter", f"--target={child}", "--mount", "--net", "--uts", "--ipc", "--pid"]
        who = ["setpriv", "--reuid=0", "--regid=0", "--clear-groups"]
        home = "/root"
        if user != "root":
            uid, home = USERS[user], self.site.home(user)
            who = ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={uid},{PROJECT_GID}"]
        base = [
            f"PATH={PATH}",
            f"HOME={home}",
            f"USER={user}",
            f"LOGNAME={user}",
            "LANG=C.UTF-8",
            "TERM=dumb",
        ]
        shell = ["bash", "-lc", '"$@"', "_"] if login else []
        return [*enter, *who, "env", "-i", "-C", cwd or home, *base, *shell, *argv]

    def run(
        self,
        *argv: str,
        user: str = "root",
        cwd: str = "",
        node: str = "",
        timeout: float = 60,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the twin and give back what it said; `env` comes on top."""
        words = ("env", *(f"{k}={v}" for k, v in env.items()), *argv) if env else argv
        return subprocess.run(
            self.inside(words, user, cwd, node, login=user != "root"),
            text=True,
            timeout=timeout * PATIENCE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )

    def sh(self, line: str, user: str = "alice", node: str = "") -> str:
        """A shell line that must end well; gives what it printed."""
        done = self.run("bash", "-c", line, user=user, node=node)
        assert done.returncode == 0, f"{line}: rc {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def write(self, path: str, text: str, user: str = "alice") -> None:
        """A file of a user's."""
        argv = self.inside(("tee", path), user, login=False)
        subprocess.run(argv, input=text, text=True, stdout=subprocess.DEVNULL, check=True, timeout=20)


def kept() -> list[str]:
    """Folders of this machine that are seen in every twin, read only, under their own names."""
    wanted = {str(ROOT), sys.prefix, *torch_folders(), *interpreter(sys.base_prefix)}
    return sorted(p for p in wanted if not any(p != q and p.startswith(q + "/") for q in wanted))


def interpreter(prefix: str) -> list[str]:
    """Its prefix; of the system's Python, as a twin has a /usr of its own, the program and its library."""
    if prefix != "/usr":
        return [prefix]
    short = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return [f"/usr/bin/{short}", f"/usr/lib/{short}"]


def torch_python() -> str:
    """The interpreter with torch; empty when nobody names one."""
    return os.environ.get("HPCTRAIN_TORCH_PYTHON", "")


def torch_prefix() -> str:
    """Its environment."""
    python = torch_python()
    return str(Path(python).parent.parent) if python else ""


def torch_folders() -> list[str]:
    """All that its interpreter reads: its prefix, its Python, and what `.pth` files add."""
    prefix = torch_prefix()
    if not prefix:
        return []
    ask = "import sys; print('\\n'.join([sys.base_prefix, *(p for p in sys.path if p and '.zip' not in p)]))"
    done = subprocess.run((f"{prefix}/bin/python", "-c", ask), capture_output=True, text=True, timeout=60)
    base, *paths = (line for line in done.stdout.splitlines() if Path(line).is_dir())
    return [prefix, *interpreter(base), *paths]


def twins() -> Iterator[Twin]:
    """All that are up."""
    for folder in sorted(RUNS.glob("*")):
        twin = Twin(folder.name)
        if twin.alive():
            yield twin


def clean() -> None:
    """Remove what dead twins left: their folders are all of it, the rest died with them."""
    for folder in RUNS.glob("*"):
        if not Twin(folder.name).alive():
            shutil.rmtree(folder, ignore_errors=True)
