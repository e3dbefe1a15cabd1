"""The root file system that all twins share: built once from Debian's packages, cached by its recipe."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpctrain.runfile.reading.toml import loads

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache/twin"
RECIPE = HERE / "rootfs.toml"
STAND_IN = HERE / "apptainer.sh"
LIMIT = 900
TIED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""What a builder starts dies with it, however deep: the next one must find nobody at work."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LEAVE_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")


class NoRoot(Exception):
    """The root file system cannot be built here; the message says why."""


def recipe() -> dict[str, Any]:
    """What goes in."""
    found: dict[str, Any] = loads(RECIPE.read_text())
    return found


def path() -> Path:
    """Where the cached root file system of this recipe is, built or not."""
    said = RECIPE.read_bytes() + STAND_IN.read_bytes()
    return CACHE / f"root-{hashlib.sha256(said).hexdigest()[:12]}"


def apptainer(root: Path) -> str:
    """Which apptainer a built root file system has: a version, or `stand-in (reason)`."""
    return (root / "etc/twin-apptainer").read_text().strip()


def ensure() -> Path:
    """Build what is not there yet; a second builder waits for the first."""
    root = path()
    if root.exists():
        return root
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            _build(root)
    return root


def _build(root: Path) -> None:
    wanted = recipe()
    new = root.with_suffix(".new")
    _remove(new)
    for old in CACHE.glob("root-*"):
        if not _in_use():
            _remove(old)
    _bootstrap(new, wanted)
    _check(new, wanted["versions"])
    _database_client(new, wanted["database_client"])
    _wheels(new / "srv/index", wanted["wheels"])
    (new / "etc/twin-apptainer").write_text(_apptainer(new, wanted["apptainer"]) + "\n")
    new.rename(root)


def _bootstrap(new: Path, wanted: dict[str, Any]) -> None:
    packages = sorted({name for group in wanted["packages"].values() for name in group})
    unsafe = ("--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={p}" for p in LEAVE_OUT))
    _debian(new, wanted["suite"], packages, "--variant=essential", *unsafe)


def _database_client(new: Path, wanted: dict[str, str]) -> None:
    """The library of another release, beside the one of this."""
    release = new.with_suffix(".client")
    _remove(release)
    _debian(release, wanted["suite"], [wanted["package"]], "--variant=extract")
    folder = new / wanted["folder"]
    folder.mkdir(parents=True)
    shutil.copy(release / wanted["library"], folder)
    _remove(release)


def _debian(folder: Path, suite: str, packages: Iterable[str], *options: str) -> None:
    if shutil.which("mmdebstrap") is None:
        raise NoRoot("mmdebstrap is not installed (run tests/setup/twin.sh)")
    argv = [
        *TIED, "mmdebstrap", "--quiet", "--mode=root", f"--include={','.join(packages)}", *options,
        '--aptopt=Acquire::Languages "none"', f"--keyring={KEYRING}", suite, str(folder), mirror(),
    ]  # fmt: skip
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise NoRoot(f"mmdebstrap did not end within {LIMIT} s") from None
    if done.returncode:
        raise NoRoot(f"mmdebstrap failed: {done.stderr.strip()[-1500:]}")


def _wheels(folder: Path, wanted: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    lines = folder.with_suffix(".txt")
    lines.write_text("".join(f"{name} --hash=sha256:{digest}\n" for name, digest in wanted.items()))
    argv = (
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
        "--require-hashes", f"--dest={folder}", "--requirement", str(lines),
    )  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise NoRoot(f"wheels of rootfs.toml: {done.stderr.strip()[-1500:]}")


def _check(new: Path, versions: dict[str, str]) -> None:
    found = installed(new)
    for name, version in versions.items():
        if not found.get(name, "").startswith(version):
            raise NoRoot(f"{name} {version}* is needed, the mirror has {found.get(name, 'none')}")


def installed(root: Path) -> dict[str, str]:
    """Package names and versions of a root file system."""
    status = (root / "var/lib/dpkg/status").read_text()
    return dict(re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", status, re.MULTILINE | re.DOTALL))


def mirror() -> str:
    """The Debian mirror that this machine uses itself."""
    for text in _sources(Path("/etc/apt")):
        for uri in re.findall(r"https?://\S+?/debian(?=/?\s|/?$)", text, re.MULTILINE):
            return str(uri)
    raise NoRoot("this machine's apt sources name no Debian mirror")


def _sources(apt: Path) -> Iterable[str]:
    for file in (apt / "sources.list", *sorted(apt.glob("sources.list.d/*"))):
        if file.is_file():
            lines = file.read_text().splitlines()
            yield "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _apptainer(new: Path, wanted: dict[str, str]) -> str:
    """Install Apptainer where its very file can be had, else the stand-in."""
    try:
        deb = urllib.request.urlopen(f"{mirror()}/{wanted['path']}", timeout=120).read()
    except (urllib.error.URLError, TimeoutError) as error:
        return _stand_in(new, f"the mirror does not give it: {error}")
    if hashlib.sha256(deb).hexdigest() != wanted["sha256"]:
        return _stand_in(new, "the mirror's file has another hash")
    (new / "tmp/apptainer.deb").write_bytes(deb)
    argv = ("chroot", str(new), "dpkg", "--install", "/tmp/apptainer.deb")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    (new / "tmp/apptainer.deb").unlink()
    return wanted["version"] if done.returncode == 0 else _stand_in(new, done.stderr.strip()[-300:])


def _stand_in(new: Path, reason: str) -> str:
    target = new / "usr/local/bin/apptainer"
    shutil.copy(STAND_IN, target)
    target.chmod(0o755)
    return f"stand-in ({reason})"


def _in_use() -> bool:
    return any((CACHE / "run").glob("*/lock"))


def _remove(folder: Path) -> None:
    if folder.exists():
        subprocess.run(("rm", "-rf", "--one-file-system", "--", str(folder)), check=True, timeout=120)


def missing() -> str:
    """Why no twin can start here; empty when it can."""
    if os.geteuid() != 0:
        return "starting a twin needs root"
    if not path().exists() and shutil.which("mmdebstrap") is None:
        return "no root file system, and mmdebstrap is not installed (run tests/setup/twin.sh)"
    argv = ("unshare", "--pid", "--mount", "--net", "--uts", "--ipc", "--fork", "true")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode else ""
