"""The tests of a trainer plugin's data: progress, checkpoints, starts, the code that travels."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.model.train import Layout, Train
from hpctrain.run.output.progress import from_log
from hpctrain.run.prepare import jobzip
from hpctrain.session import Session
from hpctrain.testing.base import none
from hpctrain.testing.subject import Subject, binding_of, rendered
from hpctrain.testing.technology import MACHINE, READY, TechnologyBase, TechnologySubject, complaints
from hpctrain_job import resume

ONE_NODE = MACHINE / "one-node.toml"
START = "/kit/start"
BY_CORE = ("export HPC_CHECKPOINTS=", 'mkdir -p "$HPC_CHECKPOINTS"', "hpc_check_saves ", "hpc_watch_saves ")
"""What every training job says of the folder, whether its trainer uses it or not."""


class TrainerBase(TechnologyBase):
    """The attributes that a subclass sets."""

    trainer: ClassVar[str] = ""
    """The name that users write: `use = "trl"`."""
    log: ClassVar[str] = ""
    """What rank 0 printed once, as text; empty for a trainer that writes metrics.jsonl itself."""
    checkpoint_names: ClassVar[tuple[str, ...]] = ()
    """What its checkpoints are called, the oldest first, with numbers of unequal length: step-5, step-10."""
    live: ClassVar[bool] = False
    """The program runs on this computer, with this Python: it is trained, stopped and started again."""
    fails: ClassVar[tuple[str, ...]] = ()
    """Values with which its program must fail, as `--set` takes them."""
    kind, hooks = "trainers", ("train_command",)

    @classmethod
    def subject_here(cls) -> TechnologySubject:
        return cls.technology_subject("train", cls.trainer, READY)

    def session(self, run_file: Path, folder: Path, *values: str) -> Session:
        """A run with this trainer whose `{folder}` is the test's own."""
        subject = self.subject_here()
        sets = (value.replace("{folder}", str(folder)) for value in (*subject.templates, *values))
        account = f"resources.account={json.dumps(self.account)}"
        return Session(run_file, on=self.cluster, sets=(account, *sets), environ=subject.environ)


class ProgressChecks(TrainerBase):
    """What it prints becomes rows, and a checkpoint is found by its name and its last file."""

    def test_an_unknown_key_is_refused_by_its_name(self, tmp_path: Path) -> None:
        key = f"train.{self.trainer}.no_such_key"
        try:
            self.session(self.subject_here().examples[0], tmp_path, f"{key}=1").plan()
        except ConfigError as error:
            none([] if "no_such_key" in complaints(error) else [f"{key}: {complaints(error)}"], "not named:")
        else:
            none([f"{key} is taken without a word: Options is an attrs class with a field for each key"])

    def test_every_pattern_has_a_step(self, subject: Subject, example: Path) -> None:
        none(
            f"{pattern.regex!r} {fault}"
            for pattern in _train(subject, example).progress
            if (fault := _pattern_fault(pattern.regex))
        )

    def test_its_log_becomes_rows(self, subject: Subject, example: Path) -> None:
        train = _train(subject, example)
        if not train.progress and not self.log:
            return  # it writes metrics.jsonl itself
        none(
            []
            if self.log
            else ["set `log`: what rank 0 printed once; the patterns of `progress` are tried on it"]
        )
        rows = list(from_log(self.log, train.progress))
        none([] if rows else ["no pattern of `progress` fits a line of `log`"])
        steps = [row["step"] for row in rows if "loss" in row]
        none([] if steps else [f"no row has a loss: {rows[0]}"])
        none(
            []
            if steps == sorted(set(steps))
            else [f"the steps of `log` do not rise, each once: {steps[:20]}"]
        )

    def test_checkpoints_are_found_by_their_names(
        self, subject: Subject, example: Path, tmp_path: Path
    ) -> None:
        layout = self._layout(subject, example)
        for name in self.checkpoint_names:
            _checkpoint(tmp_path / name, layout)
        checkpoints = resume.complete(tmp_path, layout.name, layout.complete)
        names = tuple(checkpoint.path.name for checkpoint in checkpoints)
        none(
            [] if names == self.checkpoint_names else [f"{names} are found of {self.checkpoint_names}"],
            f"Layout(name={layout.name!r}) must fit each whole name, its group `step` a number:",
        )

    def test_a_checkpoint_that_was_cut_is_passed_over(
        self, subject: Subject, example: Path, tmp_path: Path
    ) -> None:
        layout = self._layout(subject, example)
        lasting = "Layout(complete=…) names no file: what a killed job was writing would be resumed"
        none([] if layout.complete else [lasting])
        older, newer = self.checkpoint_names[-2:]
        _checkpoint(tmp_path / older, layout)
        (tmp_path / newer).mkdir()
        newest = resume.newest(tmp_path, layout.name, layout.complete, lambda _: None)
        none([] if newest and newest.path.name == older else [f"{newest} is taken, and {newer} was cut"])

    def _layout(self, subject: Subject, example: Path) -> Layout:
        layout = _train(subject, example).checkpoints
        if layout is None:
            pytest.fail(
                "Train.checkpoints is None: no attempt could go on from another; if it has none, `without`",
                pytrace=False,
            )
        if len(self.checkpoint_names) < 2:
            pytest.fail("set `checkpoint_names` to two or more, the oldest first", pytrace=False)
        return layout


class CommandChecks(TrainerBase):
    """What the job does with it: where it saves and starts, and that its code comes along."""

    def test_it_saves_where_a_second_attempt_looks(self, subject: Subject, example: Path) -> None:
        if _train(subject, example).checkpoints is None:
            pytest.skip("it writes no checkpoints")
        texts = (*_scripts(subject.session(example)).values(), *_code(_train(subject, example).code))
        lines = (line for text in texts for line in text.splitlines() if not line.startswith(BY_CORE))
        saves = any("HPC_CHECKPOINTS" in line for line in lines)
        wrong = (
            'no script of training names Var("HPC_CHECKPOINTS"), the folder that every attempt finds again'
        )
        none([] if saves else [wrong])

    def test_a_start_is_used_or_refused(self, subject: Subject, example: Path) -> None:
        session = subject.session(example, f'checkpoint.start="{START}"')
        problems = session.plan().problems
        if any("checkpoint.start" in p.where or START in p.message for p in problems):
            return
        used = any(START in text for text in _scripts(session).values())
        none([] if used else [f"[checkpoint] start = {START!r} changes no script, and no problem names it"])

    def test_its_code_travels(self, subject: Subject, example: Path) -> None:
        none(filter(None, map(_code_fault, _train(subject, example).code)))

    def test_rules_of_failures_are_patterns(self, subject: Subject) -> None:
        for rules in subject.session(subject.examples[0]).hooks.call("diagnose_rules"):
            none(f"rule {rule.name}: {fault}" for rule in rules if (fault := _regex_fault(rule.pattern)))


def _train(subject: Subject, example: Path) -> Train:
    train = subject.plan(example).train
    assert train is not None, "train_command answers a Train"
    return train


def _scripts(session: Session) -> Mapping[str, str]:
    """The files of the training step."""
    files = rendered(session, binding_of(session))
    return {k: v for k, v in files.items() if k.startswith("steps/train/") and isinstance(v, str)}


def _code(packages: Iterable[str]) -> Iterator[str]:
    """The sources of the packages that travel to the job."""
    for package in packages:
        spec = importlib.util.find_spec(package.rpartition("/")[2])
        for folder in spec.submodule_search_locations or () if spec else ():
            yield from (path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py"))


def _checkpoint(folder: Path, layout: Layout) -> None:
    folder.mkdir()
    if layout.complete:
        path = folder / layout.complete
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _code_fault(package: str) -> str:
    try:
        jobzip.build((package,))
    except HpctrainError as error:
        return f"Train.code names {package!r}: {error}"
    return ""


def _pattern_fault(regex: str) -> str:
    if fault := _regex_fault(regex):
        return fault
    return "" if "step" in re.compile(regex).groupindex else "has no group (?P<step>…): a row needs its step"


def _regex_fault(regex: str) -> str:
    try:
        re.compile(regex)
    except re.error as error:
        return f"is no regular expression: {error}"
    return ""
