"""Run one rendered step on this machine."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hpctrain.errors import NotReachable, Problem, StepFailed, StepRefused
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.system import files
from hpctrain.run.system.tools import Tools, ending
from hpctrain.run.this_computer import host_name
from hpctrain_job.exit_codes import CONFIG

LINE_LIMIT = 20
"""Lines of the log that a failure shows."""

_TAIL_BYTES = 65536
_FIRST = re.compile(r"error(?:\[[a-z-]+\])?: (?P<message>.+)")
_DETAIL = re.compile(r"  (?P<word>where|note|hint): (?P<text>.+)")


def run_step(
    directory: RunDirectory,
    step: str,
    tools: Tools,
    *,
    env: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Start `steps/<step>/job.sh` in the run directory and wait for it, whatever it takes.

    Events `step-started` and `step-ended` go to the record; `code` is null after an interrupt. A step that
    says what is wrong with the run file, and ends with CONFIG, is no failure but a refusal.
    """
    argv = ("bash", f"steps/{step}/job.sh")
    if not (directory.step(step) / "job.sh").is_file():
        raise NotReachable.of("no-step", f"{directory.title} has no script of a step {step!r}")
    log = directory.log(step)
    files.make_folder(log.parent)
    earlier = log.stat().st_size if log.exists() else 0
    record = directory.record
    record.append("step-started", step=step, host=host_name(), pid=os.getpid())
    began = time.monotonic()
    code: int | None = None
    try:
        code = tools.stream(argv, cwd=directory.path, env=env, log=log, on_line=on_line)
    finally:
        record.append("step-ended", step=step, code=code, seconds=round(time.monotonic() - began, 3))
    if not code:
        return
    lines = tuple(map(tools.scrubbed, last_lines(log, LINE_LIMIT, earlier)))
    if code == CONFIG and (problems := refusals(lines)):
        raise StepRefused(*problems)
    raise StepFailed.of(
        "step-failed",
        f"step {step} of {directory.title} {ending(code)}",
        notes=(" ".join(argv), *lines, f"log: {log}"),
        hint=f"less {log}",
    )


def last_lines(log: Path, count: int, begin: int = 0) -> tuple[str, ...]:
    """The last lines of a log of any size, none of before `begin`; lines that were rewritten show their last
    state."""
    with files.naming(log, "read"), log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begin, size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return tuple(deque((line for line in lines if line), maxlen=count))


def refusals(lines: Iterable[str]) -> tuple[Problem, ...]:
    """What a step says of the run file: the errors that people read in its log become problems again.

    ::

        error[data-field]: the evaluation data has no field nn_husnrm
          where: train.trl.eval_target_field
          note: /cluster/…/hub-3f2a has: nb, nn_husnorm
          hint: eval_target_field = "nn_husnorm"
    """
    errors: list[tuple[str, dict[str, list[str]]]] = []
    for line in lines:
        if first := _FIRST.match(line):
            errors.append((first["message"], {"where": [], "note": [], "hint": []}))
        elif errors and (detail := _DETAIL.match(line)):
            errors[-1][1][detail["word"]].append(detail["text"])
    return tuple(
        Problem(
            code="step-refused",
            message=message,
            where="".join(details["where"][-1:]),
            hint="\n".join(details["hint"]),
            notes=tuple(details["note"]),
        )
        for message, details in errors
    )
