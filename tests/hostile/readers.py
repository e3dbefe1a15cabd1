"""Readers without a command of their own, with the exit codes that their callers give."""

from __future__ import annotations

from pathlib import Path

from hpctrain.doctor import nodes
from hpctrain.errors import HpctrainError
from hpctrain.run.artifacts.artifact import differing
from hpctrain.runfile.facts import load_facts
from hpctrain_job import resume
from hpctrain_job.files.trust import NOBODY_ELSE, artifact
from hpctrain_job.guards.board import Board
from hpctrain_job.hangs import pages, verdicts
from hpctrain_job.hangs.node import Node, is_left
from hpctrain_job.hangs.thresholds import Thresholds
from hpctrain_job.vet import judge


def facts(argv: list[str]) -> int:
    """The facts of a cluster, as every command reads them first."""
    try:
        load_facts(Path(argv[0]))
    except HpctrainError as error:
        print(error)
        return error.exit_code
    return 0


def shared_artifact(argv: list[str]) -> int:
    """Whether an artifact may be used, and is what was published."""
    print(artifact(argv[0], NOBODY_ELSE))
    print(differing(Path(argv[0])))
    return 0


def checkpoint(argv: list[str]) -> int:
    """Which checkpoint a training goes on from."""
    print(resume.newest(Path(argv[0]), r"step-(?P<step>\d+)", "weights"))
    return 0


def pulses(argv: list[str]) -> int:
    """What the watch of a node makes of its ranks' pulses, and that of the first node of all pages."""
    node = Node(Path(), "n1", 0, Thresholds(), now=0.0)
    for now in (1.0, 500.0):
        node.look(now)
        print(node.limits, node.ranks(), node.pids)
    print(is_left(Path()))
    print(pages.read(Path(argv[0]), Path(argv[0], "0.json"), silent=150.0))
    return 0


def blamed(argv: list[str]) -> int:
    """The nodes that a job of a chain avoids because of what hung on them."""
    print(verdicts.blamed(Path(argv[0]), "7", ["n0", "n1"]))
    print(verdicts.blamed(Path(argv[0]), "7", []))
    return 0


def answers(argv: list[str]) -> int:
    """What compute nodes left for doctor."""
    try:
        print(nodes.answered(Path(argv[0])))
    except HpctrainError as error:
        print(error)
        return error.exit_code
    return 0


def board(argv: list[str]) -> int:
    """What a guard sees of another node."""
    print(Board(Path(argv[0])).beat("n2"))
    return 0


def vetted(argv: list[str]) -> int:
    """Which nodes a job leaves out, by what they measured, and which its chain avoids."""
    step = Path(argv[0])
    words = ("--job", "7", "--nodes", "n1 n2 n3", "--count", "3", "--needed", "1", "--gpus", "1")
    code = judge.main(["--step", str(step), *words])
    print(judge.unfit(step, "7"))
    return code
