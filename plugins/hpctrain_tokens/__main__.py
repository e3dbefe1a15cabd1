"""`python -m hpctrain_tokens COMMAND`: what a step of a plan runs in a job."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from hpctrain_job.exit_codes import CONFIG
from hpctrain_tokens.commands.answer import amount
from hpctrain_tokens.commands.parser import parser
from hpctrain_tokens.faults import GOES_ON, DataError

"""What a job ends with when its data or its options cannot be used; a scheduler need not try again."""

INTERRUPTED = 130
TENTHS = 10


class Sentences:
    """Progress for a log: a line at each tenth, with tokens a second and the time left."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.tenth = 0

    def __call__(self, read: int, total: int, tokens: int) -> None:
        tenth = read * TENTHS // max(1, total)
        if tenth <= self.tenth:
            return
        self.tenth = tenth
        spent = max(time.monotonic() - self.begun, 1e-9)
        left = spent * (total - read) / max(1, read)
        rate = f"{amount(tokens / spent)} tokens/s"
        print(
            f"tokenize {read / total:.0%}   {amount(tokens)} tokens   {rate}   {left:.0f} s left",
            file=sys.stderr,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; mistakes in data and options are told with their place."""
    try:
        args = parser("hpctrain_tokens").parse_args(argv)
        answer = args.run(args, Sentences())
    except DataError as error:
        return _print_faults(error)
    except OSError as error:
        print(f"error[data-disk]: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        print(f"help: {GOES_ON}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    for fault in answer.faults:
        print(fault.text, file=sys.stderr)
    print(*answer.lines, sep="\n")
    return CONFIG if answer.faults else 0


def _print_faults(error: DataError) -> int:
    for fault in error.faults:
        print(fault.text, file=sys.stderr)
    if error.omitted:
        print(f"and {error.omitted} more", file=sys.stderr)
    return CONFIG


if __name__ == "__main__":
    sys.exit(main())
