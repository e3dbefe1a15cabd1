"""`hpctrain diagnose` of what is no run: a log, several, or what is piped in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpctrain.cli.commands.diagnose import command
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError

MISSING = "ModuleNotFoundError: No module named 'mamba_ssm'\n"


def said(*args: str, given: str | bytes = "", as_json: bool = False) -> Result:
    done = CliRunner().invoke(
        command, args, obj=Out.of(Flags(json=as_json), {}), input=given, standalone_mode=False
    )
    if done.exception is not None:
        raise done.exception
    return done


def rules(*args: str, given: str | bytes = "") -> list[str]:
    document = json.loads(said(*args, given=given, as_json=True).stdout)
    assert (document["run"], document["steps"][0]["step"]) == (None, None)
    return [cause["rule"] for cause in document["steps"][0]["causes"]]


def test_a_log_is_read_where_it_lies(tmp_path: Path) -> None:
    log = tmp_path / "job.err"
    log.write_text("step 1\n\x1b[31mOSError: [Errno 28] No space left on device\x1b[0m\n")
    shown = said(str(log)).stdout
    assert f"{log}:2" in shown
    assert "OSError: [Errno 28] No space left on device\n" in shown
    assert "rule      disk-full, from core" in shown
    assert "more      https://" in shown
    other = tmp_path / "job.out"
    other.write_text("slurmstepd: error: Detected 1 oom_kill event in StepId=4.0.\n")
    assert rules(str(log), str(other)) == ["job-memory", "disk-full"]


def test_what_is_piped_in_is_read() -> None:
    assert rules("-", given=b"\xff\xfe torch.OutOfMemoryError: HIP out of memory.\n") == ["gpu-memory"]
    nothing = said("-", given="all is well\n").stdout
    assert "unknown: no rule knows this" in nothing
    assert "no line looks like an error: read how the log ends" in nothing
    assert rules("-") == []


def test_the_rules_of_a_trainer_and_of_a_cluster_are_asked_where_they_are_named() -> None:
    assert rules("-", given=MISSING) == ["module-missing"]
    assert rules("-", "--trainer", "automodel", given=MISSING) == ["mamba-missing"]
    assert rules("-", given="exitcode : 18\n") == []
    assert rules("-", "--on", "leonardo", given="exitcode : 18\n") == ["torchrun-18"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "nothing.log"), "no log 'nothing.log'"),
        (("nothing.log",), "cannot read nothing.log: no such file or directory"),
        (("--on", "leonardo"), "--on and --trainer are for logs"),
        (("-", "--on", "leonado"), 'no cluster "leonado"'),
        (("-", "--trainer", "axolotl"), 'no trainer "axolotl"'),
    ],
)
def test_what_cannot_be_read_is_refused(args: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        said(*args)


def test_a_missing_log_beside_one_that_is_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.log: no such file or directory") as caught:
        said("-", str(tmp_path / "gone.log"))
    assert caught.value.problems[0].hint == f"ls -l {tmp_path / 'gone.log'}"
