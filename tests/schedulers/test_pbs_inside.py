"""The variables that a real job of PBS has, read as an allocation; and how ranks start in one."""

from __future__ import annotations

import json
from pathlib import Path

from hpctrain_plugins.schedulers.pbs import allocation
from tests.schedulers.recorded import Answer, Recorded, answer, entries

INSIDE = entries("inside")
ENVIRON = dict(line.split("=", 1) for line in INSIDE["job: env | sort"]["stdout"].splitlines())


def running(argv: tuple[str, ...]) -> Answer:
    """The recorded answer of a job of two nodes and an hour, as if it were this one."""
    table = json.loads(answer("qstat", "json: R on two nodes").out)
    table["Jobs"] = {argv[-1]: table["Jobs"]["246.pbs"]}
    return Answer(argv, 0, json.dumps(table), "")


def test_a_shell_in_a_job_of_two_nodes(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text(INSIDE["job: $PBS_NODEFILE"]["stdout"])  # a line for each MPI process
    found = allocation(environ={**ENVIRON, "PBS_NODEFILE": str(nodes)}, tools=Recorded(running))
    assert found is not None
    assert (found.job, found.nodes, found.cpus) == ("401.pbs", 2, 4)
    assert found.left_s is not None
    assert 3500 < found.left_s < 3600
    assert {"PBS_JOBID", "PBS_JOBCOOKIE", "PBS_NODEFILE", "PBS_MOMPORT"} <= set(found.env)
    assert not [name for name in found.env if name.startswith("PBS_O_")]  # of the shell that called qsub


def test_a_shell_outside_has_none_and_silence_only_hides_the_time(tmp_path: Path) -> None:
    silent = Recorded(lambda argv: answer("faults", "server down: qstat json"))
    assert allocation(environ={"HOME": "/home/alice"}, tools=silent) is None
    assert not silent.asked
    found = allocation(environ={**ENVIRON, "PBS_NODEFILE": str(tmp_path / "gone")}, tools=silent)
    assert found is not None
    assert (found.nodes, found.left_s) == (1, None)
