"""Whether the store of Sarus Suite still has an image: a scratch folder, which the site empties by age.

`python -m hpctrain_job.sarus REFERENCE NOTE` ends with 7 where it is gone, and takes the NOTE that it was
there away, so that the next submission makes it anew and does not find the note again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hpctrain_job import exit_codes


def lists(table: str, reference: str) -> bool:
    """Whether `sarusctl images` shows the image as one of the read-only store."""
    repository, _, tag = reference.rpartition(":")
    rows = (line.split() for line in table.splitlines())
    return any(row[:2] == [repository, tag] and row[-1] == "true" for row in rows if len(row) > 2)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    reference, note = argv or sys.argv[1:]
    try:
        done = subprocess.run(["sarusctl", "images"], capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"hpctrain: sarusctl cannot be started: {error.strerror}", file=sys.stderr)
        return exit_codes.NOT_REACHABLE
    if done.returncode:
        print(f"hpctrain: sarusctl images: {done.stderr.strip()}", file=sys.stderr)
        return exit_codes.NOT_REACHABLE
    if lists(done.stdout, reference):
        return 0
    Path(note).unlink(missing_ok=True)
    reason = "was there when the run was planned, and is gone: submit again, and it is built anew"
    print(f"hpctrain: {reference} {reason}", file=sys.stderr)
    return exit_codes.INTEGRITY


if __name__ == "__main__":
    sys.exit(main())
