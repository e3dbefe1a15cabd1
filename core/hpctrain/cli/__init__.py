"""The command line. `--help` and `--version` import nothing but this file."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

GARBAGE = 200_000
"""Objects between two searches for garbage; a plan makes half as many."""


def main(args: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = sys.argv[1:] if args is None else args
    if not argv or argv[0] in ("-h", "--help"):
        return _print("help.txt")
    if argv[0] == "--version":
        from hpctrain.versions import DISTRIBUTION

        sys.stdout.write(f"hpctrain {DISTRIBUTION}\n")
        return 0
    from hpctrain.cli.app import run

    return run(argv)


def program() -> NoReturn:
    """Run this process's command line and end the process."""
    # What a command makes lives to its end. Searching it for garbage again and again, and taking it to
    # pieces when Python ends, costs a fifth of a plan. A command that goes on for hours is searched too.
    gc.set_threshold(GARBAGE)
    if sys.path[0] == os.path.dirname(sys.argv[0]):  # noqa: PTH120  (pathlib is not imported for --help)
        del sys.path[0]  # the folder of programs, where Python would look for each module first
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # the reader left: Python's own way to end says so
    os._exit(code)


def _print(name: str) -> int:
    # The help is a packaged text, checked against the commands by a test: ux budget, not laziness.
    with open(f"{__file__.rpartition('/')[0]}/{name}", encoding="utf-8") as file:  # noqa: PTH123
        sys.stdout.write(file.read())
    return 0
