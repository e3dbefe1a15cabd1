"""Where this attempt of a training begins: at the run's own newest checkpoint, or where the first one starts.

Run once in a job, before its ranks. A trainer's configuration for the first attempt takes the place of the
one that goes on, which the job writes anew in every attempt. What was chosen is the only line on standard
output.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hpctrain_job import resume


class Unusable(Exception):
    """There is nothing to begin with, and beginning with nothing would be another training."""


def main(argv: Sequence[str] | None = None) -> int:
    """Choose, or refuse with exit code 1."""
    options = _parser().parse_args(argv)
    try:
        chosen, is_first = choose(options)
    except Unusable as error:
        print(f"hpctrain: {error}", file=sys.stderr)
        return 1
    if is_first and options.config:
        _replace(options.config, options.first)
    print(f"hpctrain: {'starting' if is_first else 'going on'} from {chosen}", file=sys.stderr)
    print(chosen)
    return 0


def choose(options: argparse.Namespace) -> tuple[Path, bool]:
    """The path to begin at, and whether it is the start of the first attempt."""
    if options.name and resume.complete(options.folder, options.name, options.last):
        checkpoint = resume.newest(
            options.folder, options.name, options.last, _tell, contents=not resume.is_checked()
        )
        if checkpoint is None:
            raise Unusable(f"no checkpoint in {options.folder} is whole, and starting anew would lose them")
        return checkpoint.path, False
    for name in options.needs or [""]:
        path = options.start / name
        if not path.exists():
            raise Unusable(
                f"{path} does not exist: the run cannot start from it\n  its own first checkpoint would be in"
                f" {options.folder}; name another place: [checkpoint] start"
            )
    return options.start, True


def _tell(message: str) -> None:
    print(f"hpctrain: {message}", file=sys.stderr)


def _replace(config: Path, first: Path) -> None:
    """Put the text of `first` in place of `config`, visible only when it is whole."""
    fresh = config.with_name(f".{config.name}.{os.getpid()}")
    fresh.write_bytes(first.read_bytes())
    fresh.replace(config)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hpctrain_job.begin", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("start", type=Path, help="where the first attempt starts")
    parser.add_argument("folder", type=Path, help="the run's own checkpoints")
    parser.add_argument("--name", default="", help="a regular expression of their names; empty: it has none")
    parser.add_argument("--last", default="", help="the file of a checkpoint that is written last")
    parser.add_argument("--needs", action="append", help="a file that must be below `start`")
    parser.add_argument("--config", type=Path, help="the trainer's configuration, which goes on")
    parser.add_argument("--first", type=Path, help="its configuration for the first attempt")
    return parser


if __name__ == "__main__":
    sys.exit(main())
