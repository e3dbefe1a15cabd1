"""A run of two nodes, really started: job.sh, node.sh, rank.sh and task.sh in bash, around a stand-in.

Every artifact is published by the job itself, filled with a stand-in instead of what its own commands would
make: so nothing is downloaded, and the way in is the real one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import frozen

from hpctrain.model.job import JobFiles
from hpctrain.model.layer import How, Layer
from hpctrain.model.plan import Binding, Plan, PlannedStep, Surround
from hpctrain.model.step import Launch
from hpctrain.model.words import Cmd, Join, Loc, Var, Word, words_in
from hpctrain.render.scripts import step_files
from hpctrain.render.shape import Shape
from hpctrain.render.tree import Sources, tree
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain.testing import stand_in
from hpctrain.testing.inside import environment_layer

SYSTEM = "/usr/bin:/bin"
TOKEN = "t0ken-of-the-kit"  # noqa: S105  (what is looked for where no token may be)
PROGRAM = re.compile(r"[A-Za-z/][\w./-]*\Z")
STARTERS = ("bash", "sh", "env", "exec", "nice", "timeout", "stdbuf", "numactl")
"""Programs that stand in front of another."""
LINES = 15
"""Of a log, in a message."""


@frozen(kw_only=True)
class Entered:
    """How training ended, and what its ranks saw."""

    code: int
    log: str
    ranks: tuple[Mapping[str, Any], ...]
    world: int
    """How many ranks training has."""
    folder: Path
    """The run's directory."""

    @property
    def ending(self) -> str:
        """The end of its logs, for a message."""
        return "\n".join(self.log.strip().splitlines()[-LINES:])


@frozen(kw_only=True)
class Machine:
    """A folder that stands for the file systems of a cluster, and the programs of its nodes."""

    folder: Path
    hands_on: bool = True
    """Whether a container engine gives its caller's variables to a container."""
    name: str = "run"
    """Of the run's directory and of every storage role's folder."""

    @property
    def run(self) -> Path:
        return self.folder / "runs" / self.name

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def entered(self, session: Session, env: Mapping[str, str] | None = None) -> Entered:
        """Publish what the plan makes, then train; `env` are variables of the job besides PATH."""
        plan, layer = session.plan(), environment_layer(session)
        self._programs(layer)
        self.write(session, self._stood_in(plan, layer))
        ended = (0, "")
        for planned in plan.steps:
            if ended[0] == 0 and (planned.step.makes or planned.step.trains):
                ended = self._started(planned.name, env or {})
        rank_files = sorted(self.run.glob("seen.*.json"))
        train = plan.step_named("train")
        return Entered(
            code=ended[0],
            log="".join((ended[1], *(path.read_text() for path in sorted(self.run.glob("logs/train*"))))),
            ranks=tuple(json.loads(path.read_text(encoding="utf-8")) for path in rank_files),
            world=train.step.launch.world if train else 0,
            folder=self.run,
        )

    def write(self, session: Session, plan: Plan, code: bytes = b"") -> None:
        """Write the run's directory; its ranks are started as other nodes would."""
        binding = self._binding(session)
        for name, content in tree(plan, binding, self._render, Sources(run_file="", code=code)).items():
            path = self.run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (self.folder / "start.sh").write_text(stand_in.STARTER, encoding="utf-8")

    def _binding(self, session: Session) -> Binding:
        roles = (*session.cluster.storage, "runfile", "nodelocal")
        roots = {role: str(self.folder / self.name / role) for role in roles}
        for root in roots.values():
            Path(root).mkdir(parents=True, exist_ok=True)
        account = session.run.resources.account
        return Binding(roots=roots, user="somebody", account=account, python=sys.executable)

    def _programs(self, layer: Layer) -> None:
        """The node's own Python, the environment's, and the engine of a container."""
        host, image = self.folder / "host", self.folder / "image"
        stand_in.python(image if layer.starter else host, "environment" if layer.starter else "node")
        if layer.wrap:
            stand_in.python(image, "environment")
            stand_in.engine(host, _engine(layer), image, hands_on=self.hands_on)
        elif not layer.starter:
            for word in _in_front(layer):
                folder = _plain(word)
                if folder and Path(folder).is_relative_to(self.folder):
                    stand_in.python(Path(folder), "environment")

    def _stood_in(self, plan: Plan, layer: Layer) -> Plan:
        """The plan with a stand-in for the commands of every step that makes something."""
        return attrs.evolve(plan, steps=tuple(self._published(planned, layer) for planned in plan.steps))

    def _published(self, planned: PlannedStep, layer: Layer) -> PlannedStep:
        artifact = planned.step.makes
        if artifact is None:
            return planned
        places = [word for word in _in_front(layer) if isinstance(word, Loc) and below(word, artifact.loc)]
        inner = [place.path.removeprefix(artifact.loc.path) for place in places]
        source = self.folder / "made"
        stand_in.python(source, "environment")
        commands = [Cmd.of("touch", Var("WORK"))]
        if inner:
            commands = [Cmd.of("mkdir", "-p", Var("WORK"))]
        for path in inner:
            folder = Join(Var("WORK"), path)
            commands += [Cmd.of("mkdir", "-p", folder), Cmd.of("cp", "-a", f"{source}/.", folder)]
        step = attrs.evolve(planned.step, commands=tuple(commands), inside=False, files=(), launch=Launch())
        return attrs.evolve(planned, step=step, around=Surround())

    def _render(self, planned: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
        launch = planned.step.launch
        start = ("bash", str(self.folder / "start.sh"))
        shape = Shape(
            job=(
                f"export HPC_JOB=7 HPC_ATTEMPT=0 HPC_HEAD=127.0.0.1 HPC_NODES={launch.nodes}",
                f"export HPC_GPUS={launch.gpus_per_node}",
            ),
            rank=(
                "export HPC_RANK=$KIT_RANK HPC_LOCAL_RANK=$KIT_LOCAL_RANK",
                "export HPC_NODE_RANK=$KIT_NODE_RANK HPC_WORLD=$KIT_WORLD",
            ),
            start=(*start, str(launch.ranks_per_node), str(launch.world)),
            start_nodes=(*start, "1", str(launch.nodes)),
        )
        return JobFiles(files=step_files(planned, plan, binding, shape), submit=Cmd.of("true"))

    def _started(self, step: str, env: Mapping[str, str]) -> tuple[int, str]:
        """One job with the variables of `env`, PATH, and no others; its code and what it said."""
        variables = {"PATH": f"{self.folder}/host:{self.folder}/image:{SYSTEM}", **env}
        argv = ("env", "-i", *(f"{k}={v}" for k, v in variables.items()), "bash", f"steps/{step}/job.sh")
        done = Tools({}).run(argv, cwd=self.run, env={"PATH": SYSTEM}, ok=range(-64, 256), timeout=60)
        return done.code, done.out + done.err


def token(machine: Machine, session: Session) -> Path:
    """Write a token where the job of training reads it, and the run's own name, which the place has."""
    run = f"{session.run.name}-kit"
    machine.run.mkdir(parents=True, exist_ok=True)
    (machine.run / "id").write_text(f"kit\n{machine.run}\n", encoding="utf-8")
    path = machine.folder / machine.name / "state/secrets" / run / "train/huggingface"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TOKEN, encoding="utf-8")
    return path


def holders(folder: Path, text: str, besides: Sequence[Path]) -> Iterator[str]:
    """The files below a folder that hold a text."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in besides and text.encode() in path.read_bytes():
            yield str(path.relative_to(folder))


def _engine(layer: Layer) -> str:
    """The name of the program that enters a container, behind words that only start another."""
    words = [word for word in layer.wrap if isinstance(word, str) and PROGRAM.match(word)]
    name = next((word for word in words if word not in STARTERS), "/")
    if "/" in name:
        pytest.skip("the container's engine is named by a path, where no stand-in can take its place")
    return name


def _in_front(layer: Layer) -> list[Word]:
    """The folders that the environment puts in front of PATH."""
    return [var.value for var in layer.env if var.name == "PATH" and var.how is How.PREPEND]


def _plain(word: Word) -> str:
    """A path that is known now; empty where it lies in a storage role, or names a variable."""
    parts = words_in(word)
    return "".join(part for part in parts if isinstance(part, str)) if all(map(_is_text, parts)) else ""


def _is_text(word: Word) -> bool:
    return isinstance(word, str)


def below(place: Loc, above: Loc) -> bool:
    """Whether a place is another one, or lies in it."""
    return place.role == above.role and f"{place.path}/".startswith(f"{above.path}/")
