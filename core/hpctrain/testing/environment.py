"""The tests of an environment plugin: what it builds, and the way in, which is really walked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import attrs

from hpctrain.errors import ConfigError
from hpctrain.model.layer import Layer
from hpctrain.model.step import Need, Step
from hpctrain.model.words import Loc, locs_in
from hpctrain.session import Session
from hpctrain.testing.base import none
from hpctrain.testing.entering import TOKEN, Entered, Machine, below, holders, token
from hpctrain.testing.hostile import VALUES
from hpctrain.testing.inside import environment_layer
from hpctrain.testing.technology import (
    COMMAND,
    MACHINE,
    TechnologyBase,
    TechnologySubject,
    complaints,
)

ONE_NODE, TWO_NODES = MACHINE / "one-node.toml", MACHINE / "two-nodes.toml"
ODD = "a run's $(touch PWNED) folder"
OTHER_PYTHON = {"PYTHONHOME": "/nonexistent/python"}


class EnvironmentBase(TechnologyBase):
    """The attributes that a subclass sets."""

    environment: ClassVar[str] = ""
    """The name that users write: `use = "venv"`."""
    hands_on: ClassVar[bool] = True
    """For a container: whether its engine hands the variables and the folder of its caller on, as Apptainer
    does; False for podman and Docker, whose containers know what `--env` and `--workdir` say."""
    kind, hooks = "environments", ("enter_env",)

    @classmethod
    def subject_here(cls) -> TechnologySubject:
        return cls.technology_subject("environment", cls.environment, COMMAND)

    def session(self, run_file: Path, folder: Path, *values: str) -> Session:
        """A run in this environment; `{folder}` in the options is the test's own folder."""
        subject = self.subject_here()
        sets = (value.replace("{folder}", str(folder)) for value in (*subject.templates, *values))
        account = f"resources.account={json.dumps(self.account)}"
        return Session(run_file, on=self.cluster, sets=(account, *sets), environ=subject.environ)

    def enter(
        self,
        folder: Path,
        *values: str,
        run_file: Path = ONE_NODE,
        env: Mapping[str, str] | None = None,
        name: str = "run",
    ) -> Entered:
        """Train in the environment as if it had been built."""
        machine = Machine(folder=folder, hands_on=self.hands_on, name=name)
        return machine.entered(
            self.session(run_file, folder, *values), {"HOME": str(machine.home)} if env is None else env
        )


class BuildChecks(EnvironmentBase):
    """What is made: by data alone, under a name that says all that is in it."""

    def test_an_unknown_key_is_refused_by_its_name(self, tmp_path: Path) -> None:
        key = f"environment.{self.environment}.no_such_key"
        try:
            self.session(ONE_NODE, tmp_path, f"{key}=1").plan()
        except ConfigError as error:
            none([] if "no_such_key" in complaints(error) else [f"{key}: {complaints(error)}"], "not named:")
        else:
            none([f"{key} is taken without a word: Options is an attrs class with a field for each key"])

    def test_an_artifact_is_written_where_core_publishes_it(self, tmp_path: Path) -> None:
        none(
            f'step {planned.name} makes {planned.step.makes.name}, and none of its commands names Var("WORK")'
            for planned in self.session(ONE_NODE, tmp_path).plan().steps
            if planned.step.makes and not _names_work(planned.step)
        )

    def test_another_architecture_is_another_artifact(self, tmp_path: Path) -> None:
        session = self.session(ONE_NODE, tmp_path)
        on_x86, on_arm = (_keys(session, arch) for arch in ("x86_64", "aarch64"))
        none(
            f"step {name} makes one {on_x86[name][1]} for x86_64 and aarch64: Artifact(arch=cluster.arch)"
            for name in on_x86.keys() & on_arm.keys()
            if on_x86[name] == on_arm[name]
        )

    def test_what_is_entered_is_what_is_built(self, tmp_path: Path) -> None:
        session = self.session(ONE_NODE, tmp_path)
        plan = session.plan()
        artifacts = [planned.step.makes.loc for planned in plan.steps if planned.step.makes]
        none(
            f"enter_env goes to {loc.role}/{loc.path}, and the steps of build_env make "
            f"{', '.join(f'{m.role}/{m.path}' for m in artifacts) or 'nothing'}: use one Artifact for both"
            for loc in _entered(environment_layer(session))
            if not any(below(loc, artifact) for artifact in artifacts)
        )


class EntryChecks(EnvironmentBase):
    """The way in, on two nodes, in bash, around a stand-in: from plain to hostile, one thing at a time."""

    def test_a_command_enters_the_environment(self, tmp_path: Path) -> None:
        _is_inside(self.enter(tmp_path), "a plain run does not get in:")

    def test_every_rank_of_both_nodes_enters_it(self, tmp_path: Path) -> None:
        _is_inside(self.enter(tmp_path, run_file=TWO_NODES), "not every rank of two nodes gets in:")

    def test_no_home_is_needed(self, tmp_path: Path) -> None:
        env = {"USER": "somebody", "LANG": "C.UTF-8"}
        _is_inside(self.enter(tmp_path, env=env), "without HOME, as inside many containers, nobody gets in:")

    def test_a_clean_environment_is_enough(self, tmp_path: Path) -> None:
        entered = self.enter(tmp_path, env={})
        _is_inside(entered, "with PATH and no other variable of the user, nobody gets in:")
        needed = ("HPC_RUN", "HPC_STEP", "HPC_RANK", "HPC_WORLD", "HPC_HEAD", "HPC_PORT", "HPC_CHECKPOINTS")
        none(
            (name for name in needed if name not in entered.ranks[0]["env"]),
            "the task lacks variables of the job; a container must be handed HPC_*:",
        )

    def test_another_python_is_kept_out(self, tmp_path: Path) -> None:
        entered = self.enter(tmp_path, env={"HOME": str(tmp_path), **OTHER_PYTHON})
        _is_inside(entered, "with another Python's variables nobody gets in:")
        env = entered.ranks[0]["env"]
        left = [f"{name}={value}" for name, value in OTHER_PYTHON.items() if env.get(name) == value]
        none(left, "another Python's variables reach the task; unset them (How.UNSET) or set your own:")
        user_site = [] if env.get("PYTHONNOUSERSITE") else ["set PYTHONNOUSERSITE=1"]
        none(user_site, "packages in ~/.local would win over the environment's:")

    def test_a_token_reaches_the_task_and_nobody_else(self, tmp_path: Path) -> None:
        session = self.session(ONE_NODE, tmp_path, 'secrets=["huggingface"]')
        machine = Machine(folder=tmp_path, hands_on=self.hands_on)
        file = token(machine, session)
        entered = machine.entered(session, {"HOME": str(machine.home)})
        _is_inside(entered, "with a token nobody gets in:")
        received = entered.ranks[0]["env"].get("HF_TOKEN")
        none([] if received == TOKEN else [f"HF_TOKEN is {received!r}"], "the token does not reach the task:")
        written_by_ranks = sorted(entered.folder.glob("seen.*"))
        none(
            holders(tmp_path, TOKEN, (*written_by_ranks, file)),
            "the token's value was written to (engine.txt: to the argv of the container's engine):",
        )

    def test_folders_may_have_odd_names(self, tmp_path: Path) -> None:
        entered = self.enter(tmp_path, name=ODD)
        _is_inside(
            entered, f"in folders called {ODD!r} nobody gets in; words are quoted, text in Raw is not:"
        )
        none(map(str, tmp_path.rglob("PWNED")), "the name of a folder was run as a command:")

    def test_values_reach_the_program_as_they_are(self, tmp_path: Path) -> None:
        values = [*VALUES, "a, b:c=d"]
        argv = json.dumps(["python", "train.py", *values], ensure_ascii=False)
        variables = (f"env.ODD_{n}={json.dumps(v, ensure_ascii=False)}" for n, v in enumerate(values))
        entered = self.enter(tmp_path, f"train.command.argv={argv}", *variables)
        _is_inside(entered, "with odd values nobody gets in:")
        first_rank = entered.ranks[0]
        none(_differences(first_rank["argv"][1:], values), "arguments change on the way in:")
        none(
            _differences([first_rank["env"].get(f"ODD_{n}") for n in range(len(values))], values),
            "variables change:",
        )
        none(map(str, tmp_path.rglob("PWNED")), "a value was run as a command:")

    def test_a_failure_inside_is_a_failure_outside(self, tmp_path: Path) -> None:
        entered = self.enter(tmp_path, 'train.command.argv=["python", "train.py", "--exit=3"]')
        wrong = f"the program ended with 3 and the job with {entered.code}: exec the command, hide no code"
        none([] if entered.code == 3 else [wrong, entered.ending])


def _is_inside(entered: Entered, heading: str) -> None:
    """Whether every rank ran, with the environment's own Python."""
    if entered.code or len(entered.ranks) != entered.world:
        none(
            [f"code {entered.code}, {len(entered.ranks)} of {entered.world} ranks ran", entered.ending],
            heading,
        )
    hosts = [n for n, rank in enumerate(entered.ranks) if rank["who"] != "environment"]
    none(
        (
            f"rank {n}: `python` is the node's own, not the environment's: put its bin in front of PATH"
            for n in hosts
        ),
        heading,
    )


def _differences(arrived: list[str | None], given_words: list[str]) -> Iterator[str]:
    if len(arrived) != len(given_words):
        yield f"{len(given_words)} were given and {len(arrived)} arrived: {arrived}"
        return
    yield from (f"{a!r} became {b!r}" for a, b in zip(given_words, arrived, strict=True) if a != b)


def _names_work(step: Step) -> bool:
    """Whether the step writes to $WORK; text that its author quoted may name it in its own way."""
    return "WORK" in repr((step.commands, step.files, step.layer))


def _keys(session: Session, arch: str) -> dict[str, tuple[str, str]]:
    """Step that runs where training does -> the key and name of what it makes there."""
    cluster = attrs.evolve(session.cluster, arch=arch)
    steps = session.hooks.call("build_env", run=session.run, cluster=cluster, pins=session.pins) or ()
    return {
        step.name: (step.makes.key, step.makes.name)
        for step in steps
        if step.makes and Need.TARGET in step.needs
    }


def _entered(layer: Layer) -> Iterator[Loc]:
    """The places below the role of environments and images that the way in names."""
    values = tuple(var.value for var in layer.env)
    bodies = tuple(file.body for file in layer.files)
    words = (values, layer.wrap, tuple(layer.starter.values()), layer.job, layer.node, layer.task, bodies)
    yield from (loc for loc in dict.fromkeys(locs_in(words)) if loc.role in ("env", "images") and loc.path)
