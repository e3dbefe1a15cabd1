"""What a node measures inside the environment: products of its GPUs, then collectives with partners.

`python -m hpctrain_job.vet.sweep FOLDER` on each node leaves FOLDER/sweep-NUMBER.json, anew after each round.
The work is done by a process for each GPU (or one, where there are none): what hangs is ended from here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from hpctrain_job.collectives import measured
from hpctrain_job.collectives.place import Place
from hpctrain_job.vet import partners

APART, PORTS = 11, 64
"""Ports behind HPC_PORT, and how many pairs have one of their own, where several nodes are one computer."""
IMPORT_SECONDS = 40.0
"""Until every process has imported torch and multiplied."""
GRACE = 2.0
WORKER = "worker"


def main(argv: Sequence[str] | None = None) -> None:
    """The node's part; with the word `worker` one of its processes."""
    folder, *words = sys.argv[1:] if argv is None else argv
    names = os.environ["HPC_VETTED"].split()
    number = int(os.environ["HPC_NODE_RANK"])
    if words:
        _work(names, number, *map(int, words[1:]))
    else:
        _Node(Path(folder), names, number).measure()


class _Node:
    """The processes of one node, and what they told."""

    def __init__(self, folder: Path, names: list[str], number: int) -> None:
        self._path = folder / f"sweep-{number}.json"
        self._log = folder / f"sweep-{number}.log"
        self._names = names
        self._number = number
        self._processes = max(1, int(os.environ.get("HPC_GPUS") or 0)) if _has_gpus() else 1
        self._report: dict[str, Any] = {"node": names[number], "products": [], "rounds": []}

    def measure(self) -> None:
        """All rounds; processes that hang in one are started anew for those behind it."""
        self._write()
        meetings = partners.of(self._number, len(self._names))
        begin = 0
        while begin < len(meetings):
            begin = self._rounds(begin, meetings)

    def _rounds(self, begin: int, meetings: list[tuple[int, int, int] | None]) -> int:
        """The rounds from this one on, until one of them fails; the number of the next."""
        with self._workers(begin) as workers:
            until = time.monotonic() + IMPORT_SECONDS
            products = [worker.row(until) for worker in workers]
            if begin == 0:
                self._report["products"] = products
                self._write()
            for number in range(begin, len(meetings)):
                if meetings[number] is None:
                    continue
                until = time.monotonic() + partners.SECONDS[number] + GRACE
                rows = [worker.row(until) for worker in workers]
                self._report["rounds"].append(self._round(number, meetings[number], rows))
                self._write()
                if any("fault" in row for row in rows):
                    return number + 1
        return len(meetings)

    def _round(self, number: int, meeting: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
        partner = meeting[1] if meeting[2] == self._number else meeting[2]
        faults = [row["fault"] for row in rows if "fault" in row]
        operations: dict[str, dict[str, Any]] = {}
        for row in rows:
            for name, result in row.get("operations", {}).items():
                worst = operations.setdefault(name, dict(result))
                worst["right"] = worst["right"] and result["right"]
                worst["seconds"] = max(worst["seconds"], result["seconds"])
        first = rows[0]
        return {
            "round": number,
            "partner": self._names[partner],
            "engine": first.get("engine", ""),
            "device": first.get("device", "cpu"),
            "operations": operations,
            "fault": faults[0] if faults else "",
        }

    @contextlib.contextmanager
    def _workers(self, begin: int) -> Iterator[list[_Worker]]:
        words = [sys.executable, "-m", "hpctrain_job.vet.sweep", "-", WORKER, str(begin)]
        with self._log.open("ab") as log:
            workers = [
                _Worker([*words, str(local), str(self._processes)], log) for local in range(self._processes)
            ]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.end()

    def _write(self) -> None:
        partial = self._path.with_suffix(".part")
        partial.write_text(json.dumps(self._report), encoding="utf-8")
        partial.rename(self._path)


def _work(names: list[str], number: int, begin: int, local: int, processes: int) -> None:
    """One process: its product, then every round from `begin` on; a line for each."""
    gpu = local if _gpus() else None
    _say(_product(gpu) if measured.has_torch() else {})
    suffix = os.environ.get("HPC_SUFFIX", "")
    for turn, meeting in enumerate(partners.of(number, len(names))):
        if turn < begin or meeting is None:
            continue
        place, first, _ = meeting
        node = 0 if number == first else 1
        port = int(os.environ["HPC_PORT"]) + APART + turn * PORTS + place % PORTS
        spot = Place(
            rank=node * processes + local,
            world=2 * processes,
            head=names[first] + suffix,
            port=port,
            seconds=partners.SECONDS[turn],
        )
        row = measured.measured(spot, gpu)
        _say(row)
        if "fault" in row:
            return


def _has_gpus() -> bool:
    """Without the seconds that torch takes to say it."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def _product(gpu: int | None) -> dict[str, Any]:
    from hpctrain_job.collectives import group

    try:
        return {"device": "cpu" if gpu is None else "cuda", **group.product(gpu)}
    except RuntimeError as error:
        return {"fault": str(error).splitlines()[0][:300]}


def _gpus() -> int:
    if not measured.has_torch():
        return 0
    from hpctrain_job.collectives import group

    return group.gpus()


def _say(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)


class _Worker:
    """One of the processes, and the lines that it wrote."""

    def __init__(self, words: Sequence[str], log: IO[bytes]) -> None:
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._read = b""

    def row(self, until: float) -> dict[str, Any]:
        """Its next line; libraries may print others."""
        while True:
            line, end, tail = self._read.partition(b"\n")
            if end:
                self._read = tail
                with contextlib.suppress(ValueError):
                    row = json.loads(line)
                    if isinstance(row, dict):
                        return row
                continue
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                return {"fault": "it did not answer in time"}
            piece = os.read(self._out, 2**16)
            if not piece:
                return {"fault": f"its process ended with {self._process.wait()}"}
            self._read += piece

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    main()
