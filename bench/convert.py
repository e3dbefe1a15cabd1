"""Conversions beside `cp` of the same bytes and beside the tools that people use today.

    PYTHONPATH=core:plugins:. python bench/convert.py --runs 5 [--peers PYTHON] [--out DIR]

Ours and `cp` alternate, both with fsync as a conversion has it by default; medians of CPU seconds
(user and system), wall seconds and peak memory go to convert.md beside this file. `--peers` names an
interpreter with torch, deepspeed, peft and transformers: `pip install torch transformers peft
deepspeed`. Exits with 1 when a gate is broken.

Two things would drown what is measured, so both sides are spared them alike: sources compiled at
every start, and pages that a virtual machine gave back to its host and must ask for again.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[1]

HEAD = """\
# What converting costs

`{line}`, {date}, {machine}, Python {python}, numpy {numpy}.
Medians of {runs} runs that take turns with `cp --reflink=never -r` of the same bytes ({where}), while
{load} processes wanted to run (load average): above the number of cores, wall seconds are mostly waiting.
Memory is the peak of the process, at this size and at a quarter of it. The peers are the newest of
the index: DeepSpeed's own `zero_to_fp32`, peft's `merge_and_unload` and `save_pretrained`.

| | GB | CPU s = user + system | cp | times | gate | wall s | cp | times | MB | MB at 1/4 | peer |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

RUN = """
import sys
from pathlib import Path
from hpctrain_plugins.checkpoints.copying import one_thread
one_thread.ask_for()
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
import json
import math
options = ConvertOptions(**json.loads(sys.argv[4]))
convert(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), options)
"""
TOUCH = """
import mmap, sys
held = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(held), mmap.PAGESIZE):
    held[at] = 1
"""
ZERO = """
import sys
from deepspeed.utils.zero_to_fp32 import convert_zero_checkpoint_to_fp32_state_dict as convert
convert(sys.argv[1], sys.argv[2], safe_serialization=True)
"""
PEFT = """
import sys
from peft import AutoPeftModelForCausalLM
model = AutoPeftModelForCausalLM.from_pretrained(sys.argv[1], dtype="bfloat16")
model.merge_and_unload().save_pretrained(sys.argv[2])
"""


@attrs.frozen
class Case:
    """One conversion: what `cp` copies beside it, the gates on CPU and wall time, a peer."""

    name: str
    source: str
    target: str
    options: dict[str, object]
    copied: str
    cpu_gate: float
    wall_gate: float | None = None
    peer: str = ""
    peer_cpu: float = 0.0


READ: dict[str, object] = {"verify": "roundtrip"}
"""What `hpctrain convert` does when nothing else is asked for: what was written is read again."""

CASES = (
    Case("hf -> hf", "neox-hf", "hf", {}, "neox-hf", 2),
    Case("hf -> hf, read back", "neox-hf", "hf", READ, "neox-hf", 3),
    Case("hf -> neox", "neox-hf", "neox", {}, "neox-hf", 2),
    Case("hf -> neox, read back", "neox-hf", "neox", READ, "neox-hf", 3),
    Case("neox -> hf", "neox-1", "hf", {}, "neox-hf", 2),
    Case("hf -> neox tp 2", "neox-hf", "neox", {"tp": 2}, "neox-hf", 2),
    Case("the same, one thread", "neox-hf", "neox", {"tp": 2, "threads": 1}, "neox-hf", math.inf),
    Case("the same, read back", "neox-hf", "neox", {"tp": 2, **READ}, "neox-hf", 3),
    Case("neox tp 2 -> hf", "neox-2", "hf", {}, "neox-hf", 2),
    Case("neox tp 2 -> hf, read back", "neox-2", "hf", READ, "neox-hf", 3),
    Case("hf -> nanotron tp 2", "llama-hf", "nanotron", {"tp": 2}, "llama-hf", 2),
    Case("the same as megatron, read back", "llama-hf", "megatron", READ, "llama-hf", 3),
    Case("lora merge", "adapter", "hf", {}, "llama-hf", 8, 1.5, peer=PEFT, peer_cpu=3),
    Case("fp32 -> bf16", "llama-32", "hf", {"dtype": "bf16"}, "llama-32", 3),
    Case("zero-2 -> fp32", "zero-2", "hf", {}, "llama-32", 2, peer=ZERO, peer_cpu=4),
    Case("zero-2, 4 -> 3 ranks", "zero-2", "deepspeed-zero", {"ranks": 3}, "zero-2", 2.5),
    Case("zero-3, 4 -> 6 ranks", "zero-3", "deepspeed-zero", {"ranks": 6}, "zero-3", 2.5),
    Case("zero-2 -> universal", "zero-2", "deepspeed-universal", {}, "zero-2", 2.5),
)


@attrs.frozen
class Measured:
    user: float
    system: float
    wall: float
    memory: float

    @property
    def cpu(self) -> float:
        return self.user + self.system

    @property
    def shown(self) -> str:
        return f"{self.cpu:.2f} = {self.user:.2f} + {self.system:.2f}"


def measure(words: list[str], **env: str) -> Measured:
    """Run a command to its end; CPU of it and its children, its peak memory in MB."""
    env.setdefault("PYTHONDONTWRITEBYTECODE", "")  # an installed package is compiled already
    began = time.monotonic()
    process = subprocess.Popen(
        words, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(said.decode()[-2000:])
    wall = time.monotonic() - began
    return Measured(usage.ru_utime, usage.ru_stime, wall, usage.ru_maxrss / 1024)


def median(runs: list[Measured]) -> Measured:
    columns = zip(*(attrs.astuple(r) for r in runs), strict=True)
    return Measured(*(statistics.median(c) for c in columns))


_ROOM = 2_000_000_000
"""Bytes on the disk for each layer of the models that are measured."""

NEEDS = {
    "neox-1": "neox-hf",
    "neox-2": "neox-hf",
    "adapter": "llama-hf",
    "zero-2": "llama-32",
    "zero-3": "llama-32",
}
"""What a checkpoint is made from."""


def make(folder: Path, layers: int, name: str) -> None:
    """One checkpoint, and before it what it is made from."""
    from bench import convert_make as make_

    if (folder / name).exists():
        return
    if name in NEEDS:
        make(folder, layers, NEEDS[name])
    if name == "llama-32":
        make_.model(folder / name, make_.MODEL, layers, "F32")
    elif name in ("neox-hf", "llama-hf"):  # twice the layers, so that every row copies about as many bytes
        make_.model(folder / name, make_.NEOX if name == "neox-hf" else make_.MODEL, 2 * layers, "BF16")
    elif name == "adapter":
        make_.adapter(folder / name, folder / "llama-hf", 2 * layers)
    elif name in ("zero-2", "zero-3"):
        make_.zero(folder / name, folder / "llama-32", 4, int(name[-1]))
    else:
        ours(folder / "neox-hf", "neox", folder / name, {"tp": int(name[-1]), "fsync": False})


def ours(source: Path, target: str, out: Path, options: dict[str, object]) -> Measured:
    shutil.rmtree(out, ignore_errors=True)
    words = [sys.executable, "-c", RUN, str(source), target, str(out), json.dumps(options)]
    return measure(words, PYTHONPYCACHEPREFIX=str(out.parent.parent / "compiled"))


def touch(size: int) -> None:
    """Hold `size` bytes of memory for a moment: who writes next gets pages that the host backs.

    Another process does it, because a peak of ours would count as that of every later child.
    """
    subprocess.run([sys.executable, "-c", TOUCH, str(size)], check=True)


def size_of(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def peer(case: Case, python: str, folder: Path, fsync: bool) -> Measured:
    """What another one's tool costs; with `fsync` it brings its bytes to the disk as we do."""
    out = folder / "peer"
    shutil.rmtree(out, ignore_errors=True)
    touch(size_of(folder / case.copied))
    line = '"$0" -c "$1" "$2" "$3"' + (' && sync "$3"/*' if fsync else "")
    words = ["sh", "-c", line, python, case.peer, str(folder / case.source), str(out)]
    return measure(words, OMP_NUM_THREADS="1")


def bench(case: Case, folder: Path, runs: int, fsync: bool) -> tuple[Measured, Measured]:
    """Ours and `cp`, alternating; with `fsync` both bring their bytes to the disk."""
    mine, copies = [], []
    options = {**case.options, "fsync": fsync}
    for _ in range(runs):
        shutil.rmtree(folder / "copy", ignore_errors=True)
        shutil.rmtree(folder / "out", ignore_errors=True)
        source, copy = str(folder / case.copied), str(folder / "copy")
        line = f"cp --reflink=never -r {source} {copy}" + (f" && sync {copy}/*" if fsync else "")
        touch(size_of(folder / case.copied))
        copies.append(measure(["sh", "-c", line]))
        shutil.rmtree(folder / "copy", ignore_errors=True)
        touch(size_of(folder / case.copied))
        mine.append(ours(folder / case.source, case.target, folder / "out", options))
    return median(mine), median(copies)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--peers", default="")
    parser.add_argument("--fsync", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--case", action="append", choices=[c.name for c in CASES], help="only these")
    parser.add_argument("--out", type=Path)
    said = parser.parse_args()
    place = said.out or Path(tempfile.gettempdir())
    if not said.peers:
        print("without other tools: --peers names no Python that has them")
    room = said.layers * _ROOM
    if shutil.disk_usage(place).free < room:
        print(f"not measured: {place} has no {room / 1e9:.0f} GB free; --layers N asks for less")
        return 0
    with tempfile.TemporaryDirectory(dir=said.out) as place:
        return table(Path(place), said)


def prepare(folder: Path, layers: int, case: Case) -> None:
    """Make what a case needs in another process, whose memory would count as its children's too.

    What no later case needs goes first, so that what is measured lies in the page cache.
    """
    later = CASES[CASES.index(case) :]
    kept = {name for c in later for name in (c.source, c.copied, NEEDS.get(c.source, ""))}
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in kept:
            shutil.rmtree(path)
    script = "import sys, pathlib; from bench.convert import make as m; "
    script += "[m(pathlib.Path(sys.argv[1]), int(sys.argv[2]), name) for name in sys.argv[3:]]"
    words = [sys.executable, "-c", script, str(folder), str(layers), case.source, case.copied]
    subprocess.run(words, check=True, cwd=ROOT)
    for file in (f for name in (case.source, case.copied) for f in (folder / name).rglob("*") if f.is_file()):
        with file.open("rb") as data:
            while data.read(1 << 20):
                pass


def table(place: Path, said: argparse.Namespace) -> int:
    rows, broken, loads = [], 0, [os.getloadavg()[0]]
    for case in CASES:
        if said.case and case.name not in said.case:
            continue
        prepare(place / "large", said.layers, case)
        prepare(place / "small", max(1, said.layers // 4), case)
        mine, copy = bench(case, place / "large", said.runs, said.fsync)
        options = {**case.options, "fsync": False}
        small = ours(place / "small" / case.source, case.target, place / "out", options)
        other = None
        if case.peer and said.peers:
            others = [peer(case, said.peers, place / "large", said.fsync) for _ in range(min(3, said.runs))]
            other = median(others)
        bad = _broken(case, mine, copy, small, other)
        size = size_of(place / "large" / case.copied)
        rows.append(_row(case, size, mine, copy, small, other) + ("  BROKEN" if bad else ""))
        print(rows[-1], flush=True)
        loads.append(os.getloadavg()[0])
        broken += bad
    head = HEAD.format(
        line=f"python -m bench.convert --runs {said.runs} --layers {said.layers}"
        + (" --peers PYTHON" if said.peers else "")
        + ("" if said.fsync else " --no-fsync"),
        date=datetime.datetime.now(datetime.timezone.utc).date(),
        machine=f"{os.cpu_count()} cores ({platform.machine()})",
        load=f"{min(loads):.0f} to {max(loads):.0f}",
        python=platform.python_version(),
        numpy=importlib.metadata.version("numpy"),
        runs=said.runs,
        where="all with fsync" if said.fsync else "all without fsync",
    )
    if not said.case:
        (ROOT / "bench/convert.md").write_text(head + "\n".join(rows) + "\n")
    return 1 if broken else 0


def _broken(case: Case, mine: Measured, copy: Measured, small: Measured, other: Measured | None) -> bool:
    limit = 64
    bad = mine.cpu > case.cpu_gate * copy.cpu or max(mine.memory, small.memory) > limit
    bad |= case.wall_gate is not None and mine.wall > case.wall_gate * copy.wall
    if other:
        bad |= other.cpu < case.peer_cpu * mine.cpu or other.memory < 20 * mine.memory
    return bad


def _row(
    case: Case, size: int, mine: Measured, copy: Measured, small: Measured, other: Measured | None
) -> str:
    cells = [
        case.name,
        f"{size / 1e9:.1f}",
        mine.shown,
        copy.shown,
        f"{mine.cpu / copy.cpu:.2f}",
        f"{case.cpu_gate:g}" if case.cpu_gate < math.inf else "",
    ]
    wall = f"{mine.wall / copy.wall:.2f}" + (f" (gate {case.wall_gate:g})" if case.wall_gate else "")
    cells += [f"{mine.wall:.2f}", f"{copy.wall:.2f}", wall, f"{mine.memory:.0f}", f"{small.memory:.0f}"]
    said = ""
    if other:
        times = (other.cpu / mine.cpu, other.memory / mine.memory)
        said = f"{other.cpu:.1f} s CPU ({times[0]:.1f} x), {other.memory:.0f} MB ({times[1]:.0f} x)"
    return f"| {' | '.join([*cells, said])} |"


if __name__ == "__main__":
    sys.exit(main())
