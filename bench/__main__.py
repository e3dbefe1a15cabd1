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
COLUMNS = (
    "",
    "start",
    "calls at start",
    "dry run",
    "its calls",
    "to sbatch",
    "packages",
    "MB",
    "what is checked",
)
GATES = {"start": 2.0, "dry run": 16.0, "to sbatch": 18.0}
"""The most that hpctrain may take, as a multiple of a bare Python. They stand here and not among the tests: a
clock is judged on a quiet machine, by a person who sees the whole table."""


def main() -> int:
    """Measure and write; name what cannot be installed. 1 where a gate is missed."""
    missing = [why for why in (peer.install() for peer in PEERS) if why]
    peers = [peer for peer in PEERS if (peer.folder / "installed").exists()]
    here = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        rows = _rows(peers, here)
    finally:
        shutil.rmtree(here)
    text = _table(rows) + "".join(f"\nNot measured: {why}\n" for why in missing)
    (ROOT / "bench/README.md").write_text(text)
    print(text)
    return _missed_gates(dict(zip(COLUMNS, rows[0], strict=True)))


def _rows(peers: list[Peer], here: Path) -> list[list[str]]:
    started = small_site(here)
    os.chdir(here)
    (here / "train.py").write_text("print('ok')\n")
    return [_row(peer, started) for peer in peers]


def _missed_gates(ours: Mapping[str, str]) -> int:
    missed = [name for name, gate in GATES.items() if float(ours[name]) > gate]
    for name in missed:
        print(
            f"bench: {name} takes {ours[name]} times a bare Python, its gate is {GATES[name]}",
            file=sys.stderr,
        )
    return 1 if missed else 0


def _table(rows: list[list[str]]) -> str:
    head = HEAD.format(
        date=datetime.datetime.now(datetime.timezone.utc).date(),
        machine=f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}",
        python=platform.python_version(),
        runs=RUNS,
    )
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return head + "".join(ROW.format(" | ".join(line)) + "\n" for line in lines)


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
