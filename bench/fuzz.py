"""Guided fuzzing of every reader: `python -m bench.fuzz`, written beside this file; the corpus goes to
`tests/hostile/corpus.zip`.

`--rounds` are for each reader. The seed is by chance unless `--seed` gives one.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.hostile import corpus
from tests.hostile.cage import MEMORY, SECONDS, Cage
from tests.hostile.finds import FINDS
from tests.hostile.guided import Fuzzing, fuzz
from tests.hostile.place import Place
from tests.hostile.targets import TARGETS

TEXT = """\
# Readers under guided fuzzing

`python -m bench.fuzz --rounds {rounds} --seed {seed}` on {day}: each file that somebody else may have
written is damaged, and what reaches a line of ours that no other file reached is damaged further. A reader
may end in its class of error, cost {megabytes} MiB and {cpu} seconds of CPU time, and do nothing else;
{outcome}.

Lines are those of our functions that ran, at the right file and at all of them; the share is of all lines of
these functions. Finds are files that a reader fell over once, or was attacked with by hand, and are tests
now (`tests/hostile/finds.py`); seeds are the small files of this run that reached furthest, which every run
of the tests replays (`tests/hostile/corpus.zip`).

| reader | executions | lines at first | lines | share | finds | seeds |
|---|---|---|---|---|---|---|
{rows}
| **all {count}** | **{executions:,}** | | | | **{finds}** | **{seeds}** |
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--only", default="", help="readers whose name contains this; nothing is written")
    args = parser.parse_args(argv)
    done: list[Fuzzing] = []
    targets = [target for target in TARGETS if args.only in target.name]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), Cage())
        for number, target in enumerate(targets, 1):
            rng = random.Random(f"{target.name} {args.seed}")  # noqa: S311
            fuzzing = fuzz(place, target, rng, args.rounds)
            done.append(fuzzing)
            print(f"{number}/{len(targets)} {row(fuzzing)}", flush=True)
            for fault, data in fuzzing.faults.items():
                print(f"  {fault}\n  {data[:2000]!r}", flush=True)
        place.cage.close()
    if not args.only:
        write(done, args.rounds, args.seed)
    return 7 if any(fuzzing.faults for fuzzing in done) else 0


def finds(fuzzing: Fuzzing) -> int:
    return len(FINDS.get(fuzzing.target.name, ()))


def row(fuzzing: Fuzzing) -> str:
    lines = f"{fuzzing.first} | {len(fuzzing.covered)} | {fuzzing.share:.0%}"
    kept = f"{finds(fuzzing)} | {len(fuzzing.best)}"
    return f"| {fuzzing.target.name} | {fuzzing.executions:,} | {lines} | {kept} |"


def write(done: Sequence[Fuzzing], rounds: int, seed: str) -> None:
    corpus.write((fuzzing.target, fuzzing.best) for fuzzing in done)
    faults = sum(len(fuzzing.faults) for fuzzing in done)
    text = TEXT.format(
        rounds=rounds,
        seed=seed,
        day=time.strftime("%Y-%m-%d"),
        megabytes=MEMORY >> 20,
        cpu=SECONDS,
        outcome=f"**{faults} did not**" if faults else "none did otherwise",
        rows="\n".join(map(row, done)),
        count=len(done),
        executions=sum(fuzzing.executions for fuzzing in done),
        finds=sum(map(finds, done)),
        seeds=sum(len(fuzzing.best) for fuzzing in done),
    )
    Path(__file__).with_name("fuzz.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
