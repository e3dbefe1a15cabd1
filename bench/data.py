"""What preparing data costs, in CPU seconds, beside the engines alone and in the same run.

`python -m bench.data [MEGABYTES]`, with the extra `fast` installed, writes data.md beside this file.
The corpus is made from the sources and documentation of Python and its packages; the tokenizer is trained
on a part of it, which favours engines that remember words: numbers compare with each other only.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NEOX = 1.4
"""MB per CPU second that GPT-NeoX's own script needs on such text, as published."""

VOCABULARY = 50_257
SEED = 7
MOST = 400_000
RUNS = 9
"""Taking turns, so that a neighbour on the machine meets all of them; the least is told, which the
neighbour disturbed least."""


PART = 15_000_000
"""Bytes of the corpus that the reference engine reads: it is slow, and as slow with all of them."""


def texts(megabytes: float) -> Iterator[str]:
    """Files of Python's folders, in an order that is fixed."""
    paths = sysconfig.get_paths()
    kinds = (".py", ".rst", ".md", ".txt", ".pyi", ".h")
    found = {p for key in ("stdlib", "purelib") for p in Path(paths[key]).rglob("*") if p.suffix in kinds}
    files = sorted(p for p in found if p.is_file() and 0 < p.stat().st_size < MOST)
    random.Random(SEED).shuffle(files)  # noqa: S311  (an order, not a secret)
    left = megabytes * 1e6
    for path in files:
        text = path.read_text(encoding="utf-8", errors="ignore")
        if left > 0 and text.strip() and "<|endoftext|>" not in text:
            left -= len(text.encode())
            yield text


def corpus(folder: Path, megabytes: float) -> Path:
    """Rows and a tokenizer of its own."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    rows = list(texts(megabytes))
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|padding|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(rows[::4], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return path


ENGINE = "import sys, gigatoken; t = gigatoken.Tokenizer(sys.argv[2])\n"
FILES = ENGINE + (
    "t.encode_files(gigatoken.JsonlFileSource([sys.argv[1]]), parallel=False)"
    ".layout.content.data.astype('u2').tofile(sys.argv[3])"
)
LOOP = ENGINE + (
    "import json\nbatch = []\n"
    "def go(): t.encode_batch(batch, parallel=False).layout.content.data.astype('u2').tofile(out)\n"
    "with open(sys.argv[3], 'wb') as out:\n"
    "    for line in open(sys.argv[1]):\n"
    "        batch.append(json.loads(line)['text'])\n"
    "        if len(batch) == 1024: go(); batch = []\n"
    "    go()\n"
)
REFERENCE = (
    "import sys, json, tokenizers; from array import array\n"
    "t = tokenizers.Tokenizer.from_file(sys.argv[2]); batch = []\n"
    "def go(): [array('H', e.ids) for e in t.encode_batch_fast(batch)]\n"
    "for line in open(sys.argv[1]):\n"
    "    batch.append(json.loads(line)['text'])\n"
    "    if len(batch) == 256: go(); batch = []\n"
    "go()\n"
)


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a program and all it started, and the largest of them in MB."""

    cpu: float
    memory: float


def child(argv: list[str]) -> Cost:
    """What one program costs."""
    env = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "OPENBLAS_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # imports would be compiled in each run
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2)\n"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss)"
    )
    argv = [sys.executable, "-c", measure, *argv]
    done = subprocess.run(
        argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    cpu, memory = map(float, done.stdout.split())
    return Cost(cpu, memory * 1024 / 1e6)


def ours(path: Path, engine: str, workers: int = 1) -> list[str]:
    """The public command."""
    out = path.with_name(f"{engine}-{workers}-{time.monotonic_ns()}")
    argv = [sys.executable, "-m", "hpctrain_tokens", "prepare", str(path), "--output-prefix", str(out)]
    return [*argv, "--tokenizer", str(path.parent), "--engine", engine, "--workers", str(workers)]


def bare(path: Path, code: str) -> list[str]:
    """An engine with as little around it as it can work with."""
    folder = path.parent
    return [sys.executable, "-c", code, str(path), str(folder / "tokenizer.json"), str(folder / "bare.bin")]


def measured(folder: Path, runs: int, **programs: list[str]) -> dict[str, Cost]:
    """The least of programs that take turns."""
    found: dict[str, list[Cost]] = {name: [] for name in programs}
    for _ in range(runs):
        for name, argv in programs.items():
            found[name].append(child(argv))
            for made in (*folder.glob("fast-*"), *folder.glob("reference-*")):
                made.unlink()
    return {n: Cost(min(c.cpu for c in cs), max(c.memory for c in cs)) for n, cs in found.items()}


def table(path: Path) -> list[str]:
    """Each gate with what was measured."""
    one, part = path.with_name("one.jsonl"), path.with_name("part.jsonl")
    one.write_text('{"text": "a"}\n')
    with path.open("rb") as rows:
        part.write_bytes(b"".join(rows.readlines(PART)))
    found = measured(
        path.parent, RUNS, fast=ours(path, "fast"), fast_one=ours(one, "fast"), two=ours(path, "fast", 2),
        loop=bare(path, LOOP), loop_one=bare(one, LOOP), files=bare(path, FILES), files_one=bare(one, FILES),
        slow=ours(part, "reference"), slow_one=ours(one, "reference"),
        bare=bare(part, REFERENCE), bare_one=bare(one, REFERENCE),
    )  # fmt: skip
    cells = cells_of(found, path.stat().st_size / 1e6, part.stat().st_size / 1e6)
    return [f"| {' | '.join(row)} |" for row in cells]


def cells_of(found: dict[str, Cost], size: float, part: float) -> Iterator[tuple[str, str, str]]:
    """Rows of the table, for a corpus of so many MB and its first part."""

    def net(name: str) -> float:
        """CPU seconds without those of starting."""
        return found[name].cpu - found[f"{name}_one"].cpu

    fast, slow = found["fast"], found["slow"]
    yield "fast engine, start-up included, MB per CPU second", f"{size / fast.cpu:.1f}", ""
    yield "the same, beside GPT-NeoX", f"{size / fast.cpu / NEOX:.1f} x", "20 x"
    ratio = f"{net('loop') / net('fast'):.0%}"
    yield "fast engine's throughput, of gigatoken in a plain loop over the rows", ratio, "85 %"
    yield "the same, of gigatoken's own reader of files", f"{net('files') / net('fast'):.0%}", ""
    yield "start-up, CPU seconds", f"{found['fast_one'].cpu:.2f}", ""
    yield "start-up of gigatoken alone", f"{found['loop_one'].cpu:.2f}", ""
    yield "CPU of two workers, of one", f"{found['two'].cpu / fast.cpu:.2f} x", "1.15 x"
    yield "memory of a worker, fast engine", f"{fast.memory:.0f} MB", "300 MB"
    ratio = f"{net('bare') / net('slow'):.0%}"
    yield "reference engine's throughput, of `encode_batch_fast`", ratio, "75 %"
    yield "reference engine, MB per CPU second", f"{part / slow.cpu:.2f}", ""
    yield "memory of a worker, reference engine", f"{slow.memory:.0f} MB", ""


HEAD = """\
# What preparing data costs

`make bench`, {date}, {cores} cores ({machine}), Python {python}, a corpus of {size:.0f} MB made
from Python's sources and documentation, vocabulary {vocabulary}. CPU time (user and system, with children):
the least of {runs} runs that take turns; the reference engine reads the first {part} MB. GPT-NeoX is taken at
its published {neox} MB per CPU second.
A tenth of the fast engine's own time is SHA-256 of what is read and written, which the plain loop
does not have: by it files are known again.

| what | measured | gate |
| --- | --- | --- |
"""


def main() -> None:
    """Measure and write."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 150.0
    with tempfile.TemporaryDirectory() as folder:
        path = corpus(Path(folder), megabytes)
        head = HEAD.format(
            date=datetime.datetime.now(datetime.timezone.utc).date(), cores=os.cpu_count(), runs=RUNS,
            machine=platform.machine(), python=platform.python_version(), vocabulary=VOCABULARY,
            size=path.stat().st_size / 1e6, neox=NEOX, part=PART // 10**6,
        )  # fmt: skip
        text = head + "\n".join(table(path)) + "\n"
    Path(__file__).with_name("data.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
