"""What a real OpenPBS answered, read as our states."""

from __future__ import annotations

import json

import pytest

from hpctrain.errors import NotReachable
from hpctrain.model.job import JobState, State
from hpctrain_plugins.schedulers import pbs_query, pbs_words
from tests.schedulers.recorded import Answer, Recorded, always, answer, entries

TWO_NODES = "json: R on two nodes"
NO_JOBS = '{"timestamp": 1, "pbs_version": "23.06.06", "pbs_server": "pbs"}'


def read(name: str, file: str = "qstat") -> JobState:
    (job,) = pbs_query.parsed(answer(file, name).out)
    return job


@pytest.mark.parametrize(
    ("name", "state", "code", "reason"),
    [
        (TWO_NODES, State.RUNNING, None, ""),
        ("json: array, B", State.RUNNING, None, ""),
        ("qsig: suspended: state S", State.RUNNING, None, "it is suspended"),
        ("json: H, dependency (Hold_Types s)", State.QUEUED, None, "it waits for an earlier step"),
        ("json: H, user hold", State.QUEUED, None, ""),
        ("json: W", State.QUEUED, None, ""),
        ("json -x: exit 0", State.DONE, 0, ""),
        ("json -x: exit 3", State.FAILED, 3, ""),
        ("json -x: kill -9 of the shell by itself", State.FAILED, 137, ""),
        ("json -x: walltime 5 s exceeded", State.FAILED, None,
         "it ran into its time limit (Exit_status -29)"),
        ("json -x: qdel while running", State.CANCELLED, 143, ""),
        ("json -x: qdel before it ran", State.CANCELLED, None, "it was cancelled before it began"),
        ("afterok of a job that will exit 3: json, at the end", State.CANCELLED, None,
         "the step it waited for ended badly"),
        ("afterok of a held job that will be deleted: json, at the end", State.QUEUED, None,
         "it waits for an earlier step"),
    ],
)  # fmt: skip
def test_states_and_reasons(name: str, state: State, code: int | None, reason: str) -> None:
    job = read(name)
    assert (job.state, job.exit_code, job.reason) == (state, code, reason)


def test_what_a_running_job_of_two_nodes_tells() -> None:
    job = read(TWO_NODES)
    assert (job.id, job.name, job.user) == ("246.pbs", "running", "alice")
    assert (job.nodes, job.node_count, job.gpus) == (("node1", "node2"), 2, 2)
    assert (job.elapsed_s, job.limit_s, job.start) == (11, 3600, "2026-11-22T20:02:03")
    assert job.queue_options == ("-q capacity",)


def test_an_array_counts_as_the_jobs_that_it_still_is() -> None:
    """Two of its four run and two wait, which PBS lists as one job of one node."""
    array = answer("qstat", "json: array, B")

    def say(argv: tuple[str, ...]) -> Answer:
        return Answer(argv, 0, "253[].pbs\n", "") if argv[0] == "qselect" else array

    for jobs in (pbs_query.of_project("m1234", Recorded(say)), pbs_query.states((), (), Recorded(say))):
        assert [(job.state, job.node_count) for job in jobs] == (
            [(State.RUNNING, 1)] * 2 + [(State.QUEUED, 1)] * 2
        )  # fmt: skip
    (one,) = pbs_query.states(("253[].pbs",), (), Recorded(say))
    assert (one.id, one.state) == ("253[].pbs", State.RUNNING)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("json: one sub-job", [("253[1].pbs", State.RUNNING, None)]),
     ("json -x -t: finished array with sub-jobs",
      [("254[].pbs", State.FAILED, 1), ("254[0].pbs", State.DONE, 0), ("254[1].pbs", State.FAILED, 1),
       ("254[2].pbs", State.FAILED, 2)])],
)  # fmt: skip
def test_the_states_of_sub_jobs(name: str, expected: list[tuple[str, State, int | None]]) -> None:
    jobs = pbs_query.parsed(answer("qstat", name).out)
    assert [(job.id, job.state, job.exit_code) for job in jobs] == expected


def test_a_sub_job_that_is_over_while_others_run_is_unknown_without_its_status() -> None:
    row = {"job_state": "X", "array_id": "253[].pbs"}
    (job,) = pbs_query.parsed(json.dumps({"Jobs": {"253[0].pbs": row}}))
    assert job.state is State.UNKNOWN


def test_a_routed_job_counts_in_both_queues() -> None:
    assert read("route: two nodes: qstat", "waiting").queue_options == ("-q large", "-q prod")


@pytest.mark.parametrize("name", [n for n in entries("waiting") if n.startswith("waits:")])
def test_a_job_that_waits_says_why(name: str) -> None:
    job = read(name, "waiting")
    assert job.state is State.QUEUED
    assert job.reason or name == "waits: scheduling is off"  # of which PBS says nothing


def test_a_job_that_no_node_could_start_is_not_running() -> None:
    job = read("execjob_begin hook rejects: qstat", "faults")
    assert job.state is State.QUEUED
    assert job.reason.startswith("no node could start it, and PBS gave up: ask the site (job held")


def test_a_job_requeued_after_its_node_died_is_queued_whatever_its_exit_status() -> None:
    job = read("node dies: one-node job on it, later", "faults")
    assert (job.state, job.exit_code) == (State.QUEUED, None)


@pytest.mark.parametrize("name", entries("values"))
def test_odd_values_of_others_hide_no_job(name: str) -> None:
    assert len(pbs_query.parsed(answer("values", name).out)) == (0 if "empty server" in name else 1)


def test_a_tag_is_found_in_the_name_and_in_the_variable() -> None:
    tag = "12345678901234567890123456789012"  # which qstat would write as a number
    row = '{"Jobs": {"7.pbs": {"job_state": "Q", %s}}}'
    named = pbs_query.parsed(row % f'"Job_Name": "run.train.{tag}"')
    varied = pbs_query.parsed(
        row % f'"Job_Name": "x", "Variable_List": {{"HPC_SUBMITTED": "hpctrain:{tag}"}}'
    )
    assert [job.tag for job in (*named, *varied)] == [tag, tag]


@pytest.mark.parametrize(
    "name",
    ["unknown id, -x json", "malformed id with json", "other's job, query_other_jobs = False",
     "history on again: a job that finished before it was switched off"],
)  # fmt: skip
def test_a_job_that_pbs_does_not_know_is_left_out(name: str) -> None:
    assert pbs_query.states(("1.pbs",), (), always("qstat", name)) == []


def test_an_unknown_job_hides_no_other() -> None:
    (job,) = pbs_query.states(("248.pbs", "999999.pbs"), (), always("qstat", "known and unknown, -x json"))
    assert job.id == "248.pbs"


@pytest.mark.parametrize("name", ["history off: finished job with -x", "history off: running with -x"])
def test_without_history_the_running_are_asked_for_again(name: str) -> None:
    """PBS answers -x with exit 0 and no job at all, not even those that run."""

    def say(argv: tuple[str, ...]) -> Answer:
        return answer("qstat", name if "-x" in argv else TWO_NODES)

    tools = Recorded(say)
    (job,) = pbs_query.states(("246.pbs",), (), tools)
    assert job.state is State.RUNNING
    assert [("-x" in argv) for argv in tools.asked] == [True, False]


def test_a_tag_alone_is_looked_up_among_the_jobs_of_the_user() -> None:
    def say(argv: tuple[str, ...]) -> Answer:
        return Answer(argv, 0, "246.pbs\n" if argv[0] == "qselect" else NO_JOBS, "")

    tools = Recorded(say)
    assert pbs_query.states((), ("ab" * 16,), tools) == []
    assert [argv[:3] for argv in tools.asked] == [("qselect", "-x", "-u"), ("qstat", "-x", "-f")]


def test_what_all_users_of_an_account_hold() -> None:
    def say(argv: tuple[str, ...]) -> Answer:
        return Answer(argv, 0, "246.pbs\n", "") if argv[0] == "qselect" else answer("qstat", TWO_NODES)

    tools = Recorded(say)
    (job,) = pbs_query.of_project("m1234", tools)
    assert tools.asked[0] == ("qselect", "-A", "m1234")
    assert (job.user, job.node_count, job.gpus) == ("alice", 2, 2)


def test_nobody_is_asked_for_an_empty_list() -> None:
    tools = Recorded(lambda argv: Answer(argv, 0, "", ""))
    assert pbs_query.states((), (), tools) == []
    assert [argv[0] for argv in tools.asked] == ["qselect"]  # qstat without an id would answer all jobs


@pytest.mark.parametrize("name", ["server down: qstat json", "server down: qselect", "server down: qstat -B"])
def test_a_server_that_is_down_is_silent_and_not_empty(name: str) -> None:
    for ids, tags in ((("452.pbs",), ()), ((), ("ab" * 16,)), ((), ())):
        with pytest.raises(NotReachable, match="pbs does not answer"):
            pbs_query.states(ids, tags, always("faults", name))


def test_an_answer_that_is_no_json_is_silence() -> None:
    with pytest.raises(NotReachable):
        pbs_query.states(("1.pbs",), (), Recorded(lambda argv: Answer(argv, 0, "Welcome!", "")))


def test_ids_that_are_none_are_asked_of_nobody() -> None:
    tools = Recorded(lambda argv: Answer(argv, 0, NO_JOBS, ""))
    assert pbs_query.states(("-x", "12x", "a b"), (), tools) == []
    assert pbs_query.cancelled(("-x",), tools)
    assert tools.asked == []


def test_an_id_without_the_servers_name_is_answered_as_it_was_asked() -> None:
    (job,) = pbs_query.states(("246",), (), always("qstat", TWO_NODES))
    assert job.id == "246"


@pytest.mark.parametrize("name", ["qdel: held", "qdel: again, finished", "qdel: unknown", "qdel: malformed"])
def test_a_job_that_is_over_is_cancelled_already(name: str) -> None:
    assert pbs_query.cancelled(("1.pbs",), always("qdel", name))


@pytest.mark.parametrize(
    ("file", "name"),
    [("qdel", "qdel: another's job"), ("qdel", "qdel: known and unknown"), ("faults", "server down: qdel")],
)
def test_a_job_that_could_not_be_cancelled_is_said(file: str, name: str) -> None:
    with pytest.raises(NotReachable):
        pbs_query.cancelled(("1.pbs",), always(file, name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("01:00:00", 3600), ("48:00:30", 172830), ("90", 90), ("", None), ("unset", None), (None, None)],
)
def test_times(text: object, expected: int | None) -> None:
    assert pbs_words.seconds(text) == expected


def test_the_schedulers_estimate_is_told() -> None:
    """Written by hand in the form of qstat 23.06 (`ATTR_estimated` in its source): no recording holds one."""
    row = {"job_state": "Q", "estimated": {"start_time": "Sun Nov 22 20:02:03 2026", "exec_vnode": "(n1)"}}
    unknown = {"job_state": "Q", "estimated": {"start_time": "UNKNOWN"}}
    text = json.dumps({"Jobs": {"1.pbs": row, "2.pbs": unknown, "3.pbs": {"job_state": "Q", "estimated": 1}}})
    assert [job.start for job in pbs_query.parsed(text)] == ["2026-11-22T20:02:03", "", ""]
