"""Measure every launcher in turn and write the table into README.md beside this file."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.peers import PEERS, ROOT, Peer
from tests.budgets.measure import RUNS, calls, cpu, ratios
from tests.budgets.small import Started, small_site

HEAD = """\
# What starting costs

`make bench`, {date}, {machine}, Python {python}. CPU time (user and system, the least of {runs} runs
that take turns) as a multiple of `python -c pass` in the same environment; calls to the file system as strace
counts them (`%file,getdents64`). `sbatch` is a stand-in that notes how much CPU its caller had used. A dash:
this could not be done here.

"""
ROW = "| {} |"


def main() -> int:
    """Measure and write; a launcher that cannot be installed is left out and named."""
    here = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        started = small_site(here)
        os.chdir(here)
        (here / "train.py").write_text("print('ok')\n")
        text, missing = _table(started)
    finally:
        shutil.rmtree(here)
    text += "".join(f"\nNot measured: {why}\n" for why in missing)
    (ROOT / "bench/README.md").write_text(text)
    print(text)
    return 0


def _table(started: Started) -> tuple[str, list[str]]:
    missing = [why for why in (peer.install() for peer in PEERS) if why]
    peers = [peer for peer in PEERS if (peer.folder / "installed").exists()]
    head = HEAD.format(
        date=datetime.datetime.now(datetime.timezone.utc).date(),
        machine=f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}",
        python=platform.python_version(),
        runs=RUNS,
    )
    names = ("", "start", "calls", "dry run", "calls", "to sbatch", "packages", "MB", "what is checked")
    lines = [ROW.format(" | ".join(names)), ROW.format(" | ".join("---" for _ in names))]
    lines += [ROW.format(" | ".join(_row(peer, started))) for peer in peers]
    return head + "\n".join(lines) + "\n", missing


def _row(peer: Peer, started: Started) -> list[str]:
    bare = peer.argv(("python", "-c", "pass"))
    sites = list(peer.folder.glob("lib/python*/site-packages"))
    files = [f for site in sites for f in site.rglob("*") if f.is_file() and f.suffix != ".pyc"]
    return [
        f"{peer.package} {_version(peer)}",
        *_cost(peer.argv(peer.start), started.env, bare),
        *_cost(peer.argv(peer.dry), started.env, bare),
        _to_sbatch(peer.argv(peer.submit), started, bare),
        str(sum(1 for site in sites for _ in site.glob("*.dist-info"))),
        f"{sum(f.stat().st_size for f in files) / 1e6:.1f}",
        peer.note,
    ]


def _cost(argv: tuple[str, ...], env: Mapping[str, str], bare: tuple[str, ...]) -> tuple[str, str]:
    try:
        (ratio,) = ratios(bare, {"": argv}, env).values()
        asked = str(calls(argv, env, Path("strace.out"))) if shutil.which("strace") else "-"
    except AssertionError as error:
        print(f"bench: {error}", file=sys.stderr)
        return "-", "-"
    return f"{ratio:.1f}", asked


def _to_sbatch(argv: tuple[str, ...], started: Started, bare: tuple[str, ...]) -> str:
    least, nothing = float("inf"), float("inf")
    for _ in range(RUNS):
        # What follows sbatch may fail: nothing stands behind the stand-in.
        subprocess.run(argv, check=False, env=started.env, capture_output=True, timeout=60)
        if not started.notes.exists():
            return "-"
        least, nothing = min(least, started.seconds()), min(nothing, cpu(bare, started.env))
    return f"{least / nothing:.1f}"


def _version(peer: Peer) -> str:
    name = peer.folder.name.replace("-", "_")
    found = sorted(peer.folder.glob(f"lib/python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "?"


if __name__ == "__main__":
    sys.exit(main())
