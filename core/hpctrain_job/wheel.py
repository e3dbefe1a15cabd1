"""Build one wheel without the network, and say why when that fails.

`python -m hpctrain_job.wheel NAME SOURCE FOLDER [--program cc …]` runs with the Python that has what
the build needs. It says what is missing before anything is compiled.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hpctrain_job import exit_codes, offline


def missing(programs: Iterable[str]) -> list[str]:
    """The programs that are not here; `cc` is $CC where that is set, and gcc serves as well."""
    return [name for name in programs if not any(map(shutil.which, _candidates(name)))]


def _candidates(name: str) -> tuple[str, ...]:
    if name == "cc":
        return (shlex.split(os.environ["CC"])[0],) if os.environ.get("CC") else ("cc", "gcc")
    return (name,)


def find_source(source: Path) -> Path:
    """The one archive in a folder of archives, or the folder of a source tree as it is."""
    archives = [p for p in source.glob("*") if p.name.endswith((".tar.gz", ".zip", ".tgz"))]
    return archives[0] if len(archives) == 1 and not (source / "pyproject.toml").exists() else source


def build(name: str, source: Path, folder: Path) -> int:
    """One wheel of `source` in `folder`; the exit code."""
    notes = folder.absolute() / ".asked"  # a build changes its folder
    offline.install()
    argv = (
        *(sys.executable, "-m", "hpctrain_job.pip", "wheel", "--quiet", "--no-deps", "--no-index"),
        *("--no-cache-dir", "--no-build-isolation", "--check-build-dependencies"),
        *("--wheel-dir", str(folder), str(source)),
    )
    code, proxied = _watched(argv, {**os.environ, offline.LOG: str(notes)})
    reached = set(notes.read_text().split()) if notes.exists() else set()
    notes.unlink(missing_ok=True)
    wheels = list(folder.glob("*.whl"))
    tried_network = bool(reached) or proxied
    if code == 0 and len(wheels) == 1:
        without = "; it asked for the network, was refused, and did without" if tried_network else ""
        print(f"{wheels[0].name} {wheels[0].stat().st_size / 1e6:.1f} MB{without}")
        return 0
    return _report_failure(
        name, sorted(a for a in reached if offline.NOWHERE not in a), tried_network=tried_network
    )


def _watched(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, bool]:
    """Run it, pass on what it says, and notice the name of the proxy that does not exist."""
    proxied = False
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout
        for line in child.stdout:
            proxied = proxied or offline.NOWHERE.encode() in line
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
    return child.returncode, proxied


def _report_failure(name: str, reached: Sequence[str], *, tried_network: bool) -> int:
    sys.stdout.flush()
    if not tried_network:
        print(f"error: {name} was not built; see its output above", file=sys.stderr)
        return exit_codes.FAILED
    where = f" ({', '.join(reached)})" if reached else ""
    print(
        f"error: the build of {name} asked for the network{where}, which a compile step never has\n"
        'hint: switch its download off in builds.NAME.env (…_FORCE_BUILD = "TRUE"), or name what it needs '
        "in builds.NAME.build",
        file=sys.stderr,
    )
    return exit_codes.NOT_ALLOWED


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.wheel", description="build one wheel")
    parser.add_argument("name")
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", action="append", default=[])
    args = parser.parse_args(argv)
    if lacking := missing(args.program):
        print(
            f"error: {args.name} is compiled, and {', '.join(lacking)} is not here\n"
            "hint: the modules around builds are the cluster's [modules] build; builds.NAME.programs says "
            "what must be there",
            file=sys.stderr,
        )
        return exit_codes.UNAVAILABLE
    return build(args.name, find_source(args.source), args.folder)


if __name__ == "__main__":
    sys.exit(main())
