"""A trainer's program, really run on this computer: to its end, stopped and started again, and failing."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import frozen

from hpctrain.model.train import Train
from hpctrain.run.output.progress import from_log
from hpctrain.run.prepare import jobzip
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain.testing.base import none
from hpctrain.testing.entering import SYSTEM, Machine
from hpctrain.testing.technology import write_files
from hpctrain.testing.trainer import ONE_NODE, TrainerBase
from hpctrain_job import resume

SECONDS = 60
"""For a small training, and for the end of one that was told to stop."""
HERE = ("resources.gpus=1", f"environment.ready.prefix={json.dumps(sys.prefix)}")
DRIVER = """\
bash steps/train/job.sh >>logs/train.log 2>&1 &
until [[ -e stop.now ]] || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
[[ ! -e stop.now ]] || kill -s "$(<stop.now)" $!
wait $!
"""
"""Starts the job, and signals it when a file says which signal."""


@frozen
class Training:
    """One run directory, whose job can be started more than once."""

    session: Session
    machine: Machine

    @property
    def train(self) -> Train:
        train = self.session.plan().train
        assert train is not None
        return train

    def write(self) -> None:
        """The scripts of training alone."""
        plan = self.session.plan()
        steps = tuple(planned for planned in plan.steps if planned.step.trains)
        self.machine.write(self.session, attrs.evolve(plan, steps=steps), jobzip.build(self.train.code).data)
        (self.machine.run / "logs").mkdir(exist_ok=True)

    def attempt(self, signal: str = "") -> int:
        """Start the job and wait for its end; a signal is sent after its next row of progress. Its code."""
        before, codes, stop = len(self.rows()), list[int](), self.machine.run / "stop.now"
        stop.unlink(missing_ok=True)
        job = threading.Thread(target=lambda: codes.append(self._run()), daemon=True)
        job.start()
        end = time.monotonic() + SECONDS
        while signal and job.is_alive() and len(self.rows()) <= before and time.monotonic() < end:
            time.sleep(0.05)
        if signal:
            stop.write_text(signal)
        job.join(SECONDS)
        if not codes:
            pytest.fail(
                f"it runs on {SECONDS} s after {signal or 'its start'}:\n{self.ending}", pytrace=False
            )
        return codes[0]

    def _run(self) -> int:
        env = {"PATH": SYSTEM, "HOME": str(self.machine.home)}
        argv = ("env", "-i", *(f"{key}={value}" for key, value in env.items()), "bash", "-c", DRIVER)
        ended = Tools({}).run(argv, cwd=self.machine.run, env=env, ok=range(-64, 256), timeout=2 * SECONDS)
        return ended.code

    def rows(self) -> list[Mapping[str, Any]]:
        """What it has reported so far, printed or written."""
        metrics = self.machine.run / "metrics.jsonl"
        if metrics.is_file():
            rows = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
            return [row for row in rows if row.get("loss") is not None]
        return list(from_log(self.log, self.train.progress))

    @property
    def log(self) -> str:
        paths = sorted((self.machine.run / "logs").glob("train*"))
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)

    @property
    def ending(self) -> str:
        return "\n".join(self.log.splitlines()[-15:])

    def newest(self) -> resume.Checkpoint | None:
        """The newest whole checkpoint of the run."""
        layout = self.train.checkpoints
        if layout is None:
            pytest.skip("it writes no checkpoints")
        (folder,) = Path(self.machine.folder, self.machine.name, "checkpoints").glob("*/*")
        return resume.newest(folder / layout.folder, layout.name, layout.complete, lambda _: None)


class LiveTrainingChecks(TrainerBase):
    """What only the program itself can show; one rank, a few seconds."""

    @pytest.fixture
    def training(self, tmp_path: Path) -> Training:
        """A run of this trainer that was not started yet."""
        return self._training(tmp_path)

    def _training(self, folder: Path, *values: str) -> Training:
        if not self.live:
            pytest.skip("its program does not run on this computer (`live`)")
        write_files(folder, self.files)
        training = Training(self.session(ONE_NODE, folder, *HERE, *values), Machine(folder=folder))
        training.write()
        return training

    def test_it_trains_to_its_end(self, training: Training) -> None:
        code = training.attempt()
        none([] if code == 0 else [f"it ended with {code}", training.ending])
        none(
            [] if training.rows() else [training.ending], "nothing that it printed became a row of progress:"
        )
        if training.train.checkpoints:
            none(
                [] if training.newest() else [str(training.train.checkpoints)], "it left no whole checkpoint:"
            )

    def test_a_stop_is_heard_and_saves(self, training: Training) -> None:
        code = training.attempt("USR1")
        wrong = "it ended with 0, and so counts as finished: exit with hpctrain_job.signals.EXIT_SAVED"
        none([wrong, training.ending] if code == 0 else [])
        newest, last = training.newest(), int(training.rows()[-1]["step"])
        step = newest.step if newest else 0
        none(
            [f"its last row is of step {last}, its newest whole checkpoint of {step}"]
            if step < last - 1
            else [],
            "USR1 comes before a job's time is over: save, and end:",
        )

    def test_a_second_attempt_goes_on(self, training: Training) -> None:
        training.attempt("USR1")
        newest, before = training.newest(), len(training.rows())
        none([] if newest else ["a stopped attempt left no whole checkpoint"])
        code = training.attempt()
        none([] if code == 0 else [f"the second attempt ended with {code}", training.ending])
        steps = [int(row["step"]) for row in training.rows()[before:]]
        began = steps[0] if steps else 0
        step = newest.step if newest else 0
        none(
            [f"the second attempt began at step {began}, and step {step} was saved"] if began <= step else [],
            "an attempt goes on from the newest whole checkpoint in HPC_CHECKPOINTS:",
        )

    def test_term_ends_it(self, training: Training) -> None:
        code = training.attempt("TERM")
        none(
            ["after TERM it ended with 0: a cancelled training is not finished", training.ending]
            if code == 0
            else []
        )

    def test_a_failure_is_no_success(self, tmp_path: Path) -> None:
        training = self._training(tmp_path, *self.fails)
        none(
            []
            if self.fails
            else ["set `fails`: values with which your program must fail, as --set takes them"]
        )
        code = training.attempt()
        none(
            ["its program failed and the job ended with 0: pass its code on", training.ending]
            if code == 0
            else []
        )
