"""Acme's sweeps: one run file, one variable with several values, the run whose last loss is the least.

`python -m acme_sweep RUN.toml VARIABLE VALUE...`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from hpctrain import JobFailed, LiveRun, Session


def sweep(run_file: str, variable: str, values: Iterable[str]) -> Iterator[tuple[str, LiveRun]]:
    """Every run, submitted; all are in the queue before the first is waited for."""
    sessions = [(value, Session(run_file, sets=[f'env.{variable}="{value}"'])) for value in values]
    yield from [(value, session.submit()) for value, session in sessions]


def losses(runs: Iterable[tuple[str, LiveRun]], timeout: float) -> dict[str, float]:
    """The last loss of each run that ended well."""
    found = {}
    for value, run in runs:
        try:
            run.wait(timeout=timeout)
        except JobFailed as error:
            print(f"{value}: {error.problems[0].message}", file=sys.stderr)
            continue
        found[value] = run.metrics().last["loss"]
    return found


if __name__ == "__main__":
    _, run_file, variable, *values = sys.argv
    found = losses(list(sweep(run_file, variable, values)), timeout=120)
    for value in sorted(found, key=lambda value: found[value]):
        print(value, found[value])
