"""The stand-in against the recordings of a real OpenPBS: the same words, exit codes and fates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_for
from tests.schedulers.recorded import answer
from tests.standin_pbs.fixtures import Standin

OK = "#!/bin/bash\n#PBS -N ok\n#PBS -l select=1:ncpus=1\n#PBS -l walltime=00:05:00\n"


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    found = Standin(tmp_path)
    (tmp_path / "ok.sh").write_text(f"{OK}echo hello\n")
    (tmp_path / "sleep.sh").write_text(f"{OK}sleep 600\n")
    yield found
    found.clean()


def submit(standin: Standin, script: str, *words: str) -> str:
    """Hand a script of the test's folder in."""
    done = standin.run("qsub", *words, script, cwd=standin.bin.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(standin: Standin, ident: str) -> str:
    row = standin.jobs.get(ident)
    return str(row["job_state"]) if row else "gone"


@pytest.mark.parametrize(
    "name",
    ["unknown queue", "unknown resource in a chunk", "unknown option", "script missing", "name of 231",
     "walltime above the queue's limit", "nodes above the queue's limit", "depend malformed",
     "depend unknown kind", "-v with a name only, not set"],
)  # fmt: skip
def test_it_refuses_in_the_recorded_words(standin: Standin, name: str) -> None:
    recorded = answer("qsub", name)
    done = standin.run(*recorded.argv, cwd=standin.bin.parent)
    assert (done.returncode, done.stdout) == (recorded.code, "")
    assert done.stderr.splitlines()[0] == recorded.err.splitlines()[0]


@pytest.mark.parametrize(
    "name",
    ["server down: qsub -f", "server down: qstat", "server down: qstat json", "server down: qselect",
     "server down: qdel"],
)  # fmt: skip
def test_it_is_down_in_the_recorded_words(standin: Standin, name: str) -> None:
    recorded = answer("faults", name)
    standin.set(down=True)
    done = standin.run(*recorded.argv, cwd=standin.bin.parent)
    assert (done.returncode, done.stderr) == (recorded.code, recorded.err)
    assert ("Jobs" in done.stdout, bool(done.stdout)) == (False, bool(recorded.out))


@pytest.mark.parametrize(
    "name",
    ["unknown id, -x json", "malformed id with json"],
)
def test_it_knows_no_job_in_the_recorded_words(standin: Standin, name: str) -> None:
    recorded = answer("qstat", name)
    done = standin.run(*recorded.argv)
    assert (done.returncode, done.stderr) == (recorded.code, recorded.err)
    assert "Jobs" not in json.loads(done.stdout)


def test_a_finished_job_has_no_more_than_recorded_attributes(standin: Standin) -> None:
    ident = submit(standin, "ok.sh")
    wait_for("its end", lambda: state(standin, ident) == "F")
    (row,) = json.loads(standin.run("qstat", "-x", "-f", "-F", "json", ident).stdout)["Jobs"].values()
    (real,) = json.loads(answer("qstat", "json -x: exit 0").out)["Jobs"].values()
    assert set(row) - set(real) <= {"session_id"}  # the real one ended too soon to have one
    assert (row["substate"], row["Exit_status"], row["comment"].rpartition(" ")[2]) == (
        real["substate"], real["Exit_status"], real["comment"].rpartition(" ")[2],
    )  # fmt: skip
    missing = standin.run("qstat", "-f", "-F", "json", ident)
    recorded = answer("qstat", "finished job without -x, json")
    assert (missing.returncode, missing.stderr) == (recorded.code, recorded.err.replace("237.pbs", ident))


def test_without_history_it_answers_no_job_at_all(standin: Standin) -> None:
    ident = submit(standin, "sleep.sh", "-h")
    standin.set(history=False)
    done = standin.run("qstat", "-x", "-f", "-F", "json", ident)
    recorded = answer("qstat", "history off: finished job with -x")
    assert (done.returncode, done.stderr) == (0, recorded.err.replace("237.pbs", ident))
    assert "Jobs" not in json.loads(done.stdout)


@pytest.mark.parametrize(
    ("kind", "code", "fate"),
    [("afterok", 0, "ran"), ("afterok", 3, "never"), ("afternotok", 3, "ran"), ("afternotok", 0, "never"),
     ("afterany", 3, "ran")],
)  # fmt: skip
def test_the_fate_of_a_dependent(standin: Standin, kind: str, code: int, fate: str) -> None:
    (standin.bin.parent / "end.sh").write_text(f"{OK}sleep 0.5\nexit {code}\n")
    first = submit(standin, "end.sh")
    second = submit(standin, "ok.sh", f"-Wdepend={kind}:{first}")
    third = submit(standin, "ok.sh", f"-Wdepend=afterok:{second}")
    assert state(standin, second) == "H"
    wait_for("the chain", lambda: state(standin, third) == "F")
    assert ("stime" in standin.jobs[second]) == (fate == "ran")
    assert ("stime" in standin.jobs[third]) == (fate == "ran")


def test_dependents_of_a_job_that_was_deleted_before_it_ran_stay_held(standin: Standin) -> None:
    first = submit(standin, "sleep.sh", "-h")
    second = submit(standin, "ok.sh", f"-Wdepend=afterany:{first}")
    assert standin.run("qdel", first).returncode == 0
    assert (state(standin, first), state(standin, second)) == ("F", "H")


def test_a_dependent_of_nobody_is_accepted_and_over(standin: Standin) -> None:
    ident = submit(standin, "ok.sh", "-Wdepend=afterok:999999.pbs")
    assert (state(standin, ident), "Exit_status" in standin.jobs[ident]) == ("F", False)


def test_a_job_is_deleted_as_recorded(standin: Standin) -> None:
    ident = submit(standin, "sleep.sh")
    wait_for("its start", lambda: "session_id" in standin.jobs[ident])
    assert standin.run("qdel", ident).returncode == 0
    wait_for("its end", lambda: state(standin, ident) == "F")
    (real,) = json.loads(answer("qstat", "json -x: qdel while running").out)["Jobs"].values()
    row = standin.jobs[ident]
    assert (row["substate"], row["Exit_status"]) == (real["substate"], real["Exit_status"])
    again = standin.run("qdel", ident)
    recorded = answer("qdel", "qdel: again, finished")
    assert (again.returncode, again.stderr) == (recorded.code, recorded.err.replace("286.pbs", ident))
