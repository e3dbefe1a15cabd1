"""Bring a Python where a site has none of the version: uv's own build of it, by the uv of a wheel house.

`python -m hpctrain_job.uv_python FOLDER VERSION` installs the uv that lies in FOLDER for this command alone,
and leaves the Python as FOLDER/python. Which build it is, and its hash, stands in uv, which the lock pins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIMIT = 1800
TRUST = ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")
"""One switch by its name of today and by its older one: the authorities of this computer count."""
HINT = """\
hint: a Python of the site's own, by a module that brings it:
  [environment]
  python = "3.11"
  [environment.uv]
  own_python = false"""


def bring(folder: Path, version: str) -> str:
    """Fetch it; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory(prefix=".uv-", dir=folder) as name:
        tool, target = f"{name}/tool", f"{name}/pythons"
        words = ("--quiet", "--no-deps", "--no-index", "--find-links", str(folder), "--target", tool, "uv")
        if _code(sys.executable, "-m", "hpctrain_job.pip", "install", *words):
            return f"the uv in {folder} is for another machine than this one, which fetches for it"
        options = ("--no-bin", "--managed-python", "--cache-dir", f"{tool}/cache")
        code = _code(f"{tool}/bin/uv", "python", "install", *options, "--install-dir", target, version)
        prefixes = {path.resolve().parents[1] for path in Path(target).glob(f"*/bin/python{version}")}
        if code or len(prefixes) != 1:
            return f"uv brought no Python {version}: its own words are above"
        prefixes.pop().rename(folder / "python")
    return ""


def _code(*argv: str) -> int:
    """How the program ended; it prints for itself. From the root folder: uv obeys the site's and the user's
    configuration (a mirror, perhaps), and none that others may have left above the wheel house."""
    chosen = next((os.environ[name] for name in TRUST if os.environ.get(name)), "1")
    env = {**os.environ, **dict.fromkeys(TRUST, chosen)}
    try:
        return subprocess.run(argv, check=False, env=env, cwd="/", timeout=LIMIT).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    folder, version = sys.argv[1:] if argv is None else argv
    reason = bring(Path(folder), version)
    if reason:
        print(f"error: {reason}\n{HINT}", file=sys.stderr)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
