"""Hand over jobs of a chain as one of its own does, and die by SIGKILL at the k-th moment.

Run as `python -m tests.chain.killed_job DIRECTORY COUNT AFTER NUMBER`: a moment is a line of the record about
to be written, a line just written, or an answer of the scheduler that nobody has read yet.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from hpctrain_job.attempts import Step
from hpctrain_job.chain.successors import Handover
from hpctrain_job.files import shared

APPEND, CALL = shared.append_line, Handover._call


def main() -> None:
    path, count, after, number = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    moments = 0

    def moment() -> None:
        nonlocal moments
        moments += 1
        if moments == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def append(path: Path, line: bytes) -> None:
        moment()
        APPEND(path, line)
        moment()

    def call(self: Handover, *words: Any) -> tuple[int, str]:
        answer = CALL(self, *words)
        moment()
        return answer

    shared.append_line = append
    Handover._call = call  # type: ignore[assignment,method-assign]
    handover = Step(path, "train").handover()
    assert handover is not None
    handover.hand_over(count, after, apart=0.2)


if __name__ == "__main__":
    main()
