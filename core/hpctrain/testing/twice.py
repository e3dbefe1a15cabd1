"""The same plan on every machine: planned twice, as two people on two computers would."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hpctrain.run.system.tools import Done, Tools
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject

RUNNER = """
import sys
from hpctrain.cli import main
from hpctrain.run import this_computer
this_computer.host_name = lambda: "laptop"
this_computer._full_name = lambda: ()
code = main(sys.argv[1:])
print(*sorted({"torch", "transformers", "trl", "datasets", "jax", "tensorflow"} & set(sys.modules)))
sys.exit(code)
"""
"""A command on a computer that is not the cluster's: the kit also runs on the site's own login nodes, whose
variables these two people do not have."""
PEOPLE = (
    {"USER": "ada", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1", "LANG": "C.UTF-8"},
    {
        "USER": "grace",
        "TZ": "Etc/GMT+12",
        "PYTHONHASHSEED": "4242",
        "LANG": "C",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_ACCOUNT": "other",
        "SLURM_CLUSTER_NAME": "elsewhere",
        "CUDA_VISIBLE_DEVICES": "3",
        "NCCL_NET": "IB",
        "MODULEPATH": "/opt/modulefiles",
        "http_proxy": "http://proxy:1",
    },
)
"""Two shells that differ in all that a plan must not depend on; 26 hours apart."""


class TwiceChecks(Base):
    """Determinism, and a control plane that stays light."""

    def test_the_same_plan_everywhere(self, subject: Subject, example: Path) -> None:
        first, second = (plan(done) for done in planned(subject, example))
        none(_difference(first, second), "two people get two plans:")

    def test_planning_imports_no_training_code(self, subject: Subject, example: Path) -> None:
        for done in planned(subject, example):
            heavy = done.out.splitlines()[-1]
            none(heavy.split(), "planning imports what only the job has:")


@cache
def planned(subject: Subject, example: Path) -> tuple[Done, ...]:
    """`hpctrain plan --json` of a copied example by each of two people."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(_planned(subject, example, Path(folder, who["USER"]), who) for who in PEOPLE)


def _planned(subject: Subject, example: Path, folder: Path, who: dict[str, str]) -> Done:
    home = folder / "home"
    work = folder / f"work of {who['USER']}"
    home.mkdir(parents=True)
    shutil.copytree(example.parent, work)
    env = {**subject.environ, **who, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = ["plan", example.name, "--json", "--on", subject.name, "--account", subject.account]
    argv += [word for value in subject.sets for word in ("--set", value)]
    done = Tools({}).run((sys.executable, "-c", RUNNER, *argv), cwd=work, env=env, ok=range(256))
    none(failure_lines(done) if done.code else (), f"{example} does not plan for {who['USER']}:")
    return done


def failure_lines(done: Done) -> list[str]:
    """What a command that failed said; the problems of a plan stand in the plan."""
    if done.err:
        return done.err.splitlines()
    return [problem["message"] for problem in plan(done)["plan"]["problems"] if problem["fatal"]]


def plan(done: Done) -> dict[str, Any]:
    """The digest and the plan of a `plan --json`; what the computer says now is no part of it."""
    document = json.loads(done.out.splitlines()[0])
    return {key: document[key] for key in ("digest", "plan")}


def _text(plan: dict[str, Any]) -> str:
    return json.dumps(plan, indent=1)


def _difference(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    lines = difflib.unified_diff(_text(first).splitlines(), _text(second).splitlines(), "ada", "grace", n=1)
    return list(lines)[:40]
