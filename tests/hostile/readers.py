"""Readers without a command of their own, with the exit codes that their callers give."""

from __future__ import annotations

from pathlib import Path

from hpctrain.errors import HpctrainError
from hpctrain.run.artefact import differing
from hpctrain.runfile.facts import load_facts
from hpctrain_job import resume
from hpctrain_job.trust import NOBODY_ELSE, artifact


def facts(argv: list[str]) -> int:
    """The facts of a cluster, as every command reads them first."""
    try:
        load_facts(Path(argv[0]))
    except HpctrainError as error:
        print(error)
        return error.exit_code
    return 0


def artefact(argv: list[str]) -> int:
    """Whether an artefact may be used, and is what was published."""
    print(artifact(argv[0], NOBODY_ELSE))
    print(differing(Path(argv[0])))
    return 0


def checkpoint(argv: list[str]) -> int:
    """Which checkpoint a training goes on from."""
    print(resume.newest(Path(argv[0]), r"step-(?P<step>\d+)", "weights"))
    return 0
