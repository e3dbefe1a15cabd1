"""What qsub of a real OpenPBS said: an id, a refusal, or a broken line after which a job may exist."""

from __future__ import annotations

import pytest

from hpctrain.errors import NotReachable, SubmitError
from hpctrain.model.job import Job
from hpctrain_plugins.schedulers import pbs_submit
from tests.schedulers.recorded import Recorded, always, entries

JOB = Job(step="train", directory="/run", name="train", argv=("bash", "steps/train/qsub.sh"))
QSUB, FAULTS = entries("qsub"), entries("faults")
ACCEPTED = [name for name, said in QSUB.items() if name.startswith("ok,") and said["stdout"]]
ELSEWHERE = ("PBS_DEFAULT", "PBS_SERVER", "PBS_CONF_FILE", "unknown server")
NOT_THERE = [name for name, said in QSUB.items() if name.startswith(ELSEWHERE) and said["exit"]]
REFUSED = [name for name, said in QSUB.items() if said["exit"] and name not in NOT_THERE]
BROKEN = [name for name, said in FAULTS.items() if said["argv"][0] == "qsub" and said["exit"]]


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_job_has_the_id_that_qsub_wrote(name: str) -> None:
    assert pbs_submit.submitted(JOB, always("qsub", name)) == entries("qsub")[name]["stdout"].strip()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_said_in_the_words_of_pbs(name: str) -> None:
    with pytest.raises(SubmitError) as caught:
        pbs_submit.submitted(JOB, always("qsub", name))
    (problem,) = caught.value.problems
    assert problem.code == "refused"
    first = entries("qsub")[name]["stderr"].splitlines()[0].removeprefix("qsub:").strip()
    assert problem.message == f"pbs refused the job of step train: {first}"


@pytest.mark.parametrize(("file", "name"), [("qsub", n) for n in NOT_THERE] + [("faults", n) for n in BROKEN])
def test_a_broken_line_is_no_refusal(file: str, name: str) -> None:
    """The job may exist: core looks its tag up before anything is submitted again."""
    with pytest.raises(SubmitError) as caught:
        pbs_submit.submitted(JOB, always(file, name))
    assert [problem.code for problem in caught.value.problems] == ["submit-unclear"]


def test_exit_0_without_an_id_is_unclear() -> None:
    with pytest.raises(SubmitError) as caught:
        pbs_submit.submitted(JOB, always("qsub", "ok, -z"))
    assert caught.value.problems[0].code == "submit-unclear"


def test_a_frozen_server_is_unclear_and_a_missing_qsub_is_not() -> None:
    def frozen(_: tuple[str, ...]) -> None:
        raise NotReachable(*NotReachable.of("timeout", "qsub did not answer").problems)

    def missing(_: tuple[str, ...]) -> None:
        raise NotReachable(*NotReachable.of("no-program", "there is no qsub").problems)

    with pytest.raises(SubmitError):
        pbs_submit.submitted(JOB, Recorded(frozen))  # type: ignore[arg-type]
    with pytest.raises(NotReachable):
        pbs_submit.submitted(JOB, Recorded(missing))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("walltime above the queue's limit", 'ask for less: [resources] time = "30m" or nodes = 1'),
        ("unknown queue", "see which queues there are: hpctrain clusters NAME"),
        ("max_queued of the queue reached", "wait until one of your jobs ends: hpctrain runs"),
        ("account refused by a queuejob hook", 'set your project: [resources] account = "PROJECT"'),
    ],
)
def test_what_to_do_about_it(name: str, hint: str) -> None:
    with pytest.raises(SubmitError) as caught:
        pbs_submit.submitted(JOB, always("qsub", name))
    assert caught.value.problems[0].hint == hint
