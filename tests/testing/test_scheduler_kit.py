"""The kit of schedulers passes what `init plugin` writes, and names the rule that a seeded fault breaks."""

from __future__ import annotations

import pytest

from hpctrain.cli.init import scaffold
from tests.testing.seeded import Fault, Verdicts, judged, seeded

FILES = scaffold.technology("scheduler", "oak")
PLUGIN, TESTS = FILES["hpctrain_oak.py"], FILES["tests/test_kit.py"]
WRAPPED = PLUGIN.replace('SCHEDULER = "oak"', 'SCHEDULER = "wrapped"').replace(
    '        "oak-submit",\n', '        *("bash", "-c", \'"$@"\', "_", "oak-submit"),\n'
)
"""It submits through a script of its own."""
CLASS = """

class Test{name}(TestOak):
    scheduler = "{name}"
"""
FAULTS = {
    "memory is dropped": Fault(
        '*((f"#oak --memory={launch.memory_gb}G",) if launch.memory_gb else ()),',
        "",
        "every_field_of_launch_is_seen",
        "Launch.memory_gb = 77 changes no script",
    ),
    "a binding is dropped": Fault(
        "planned.step.launch.bind:",
        "False:",
        "every_field_of_launch_is_seen",
        "Launch.bind = 'closest' changes no",
    ),
    "what a rank sees is dropped": Fault(
        'launch.visible == "one"',
        "False",
        "every_field_of_launch_is_seen",
        "Launch.visible = 'one' changes no script",
    ),
    "words of a starter are dropped": Fault(
        ", *step.around.starter.get(SCHEDULER, ())",
        "",
        "every_word_for_the_scheduler_is_seen",
        "`starter` of a layer",
    ),
    "variables of the login are dropped": Fault(
        ", *plan.cluster.exported", "", "every_word_for_the_scheduler_is_seen", "[policy] submit_env"
    ),
    "a user's word is a directive": Fault(
        " if word not in users", "", "what_a_user_says_is_in_no_directive", "would begin another"
    ),
    "a job has no tag": Fault(
        'Var("HPC_TAG")',
        '"hpc"',
        "a_job_is_found_by_its_tag_and_waits_for_others",
        'JobFiles.submit has no Var("HPC_TAG")',
    ),
    "a rank does not know its node": Fault(
        " HPC_NODE_RANK=$OAK_NODE", "", "jobs_and_ranks_know_who_they_are", "HPC_NODE_RANK"
    ),
    "a header runs": Fault(
        "        header=(\n",
        "        header=(\n            'cd \"$OAK_FOLDER\"',\n",
        "a_header_holds_comments_only",
        "bash would run what stands in a header",
    ),
    "a lost answer is a refusal": Fault(
        "done.err.startswith(REFUSED)",
        "done.code",
        "a_lost_answer_is_no_refusal",
        "submitted twice",
    ),
    "a forgotten job is done": Fault(
        "    return [job for job in jobs if",
        "    known = {job.id for job in jobs}\n"
        "    jobs += [JobState(id=i, state=State.DONE) for i in ids if i not in known]\n"
        "    return [job for job in jobs if",
        "an_unknown_id_is_left_out",
        "never done",
    ),
    "silence is an empty queue": Fault(
        "    if done.code or any(", "    if any(", "a_silent_scheduler_is_not_reachable", "raise NotReachable"
    ),
    "a failure is called done": Fault(
        '"F": State.FAILED', '"F": State.DONE', "every_state_is_known", "a job that is failed is called done"
    ),
    "queues cannot be counted": Fault(
        ', queue_options=(f"--queue={queue}",)',
        "",
        "jobs_of_a_queue_can_be_counted",
        "no limit on jobs would hold",
    ),
    "two jobs of a tag train": Fault(
        """tag='"${1:-}"',""", "", "two_jobs_of_one_tag_train_once", "two jobs with one tag would both train"
    ),
    "a time limit comes without a warning": Fault(
        "notice=minutes * 60 - min(120, minutes * 30) if step.step.trains else 0,",
        "",
        "a_training_is_warned_before_its_time_limit",
        "is killed at its time limit and saves nothing",
    ),
    "mail is promised and not sent": Fault(
        "return JobFiles(",
        "return JobFiles(mails=True, ",
        "mail_that_is_promised_is_asked_for",
        "no script and no word of `submit` has the address",
    ),
    "a job is said to be queued again": Fault(
        "plan.run.resources.is_chain and",
        "False and",
        "a_job_is_queued_again_or_that_is_refused",
        "would end after one attempt",
    ),
    "a long training ends early": Fault(
        "handover=Handover(",
        "handover=None and Handover(",
        "jobs_hand_over_the_next_or_that_is_refused",
        "that a limit leaves out would never come",
    ),
    "each job is asked for": Fault(
        '    done = tools.run(("oak-list", "--mine"), ok=ANY)\n',
        '    for i in ids:\n        done = tools.run(("oak-list", "--mine"), ok=ANY)\n',
        "one_query_is_about_many_jobs",
        "50 programs were started for 50 jobs",
    ),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the kit says of each faulty plugin, and of the one that is right."""
    modules, tests, nodes = {"oak": PLUGIN, "wrapped": WRAPPED}, TESTS + CLASS.format(name="wrapped"), []
    for number, fault in enumerate(FAULTS.values()):
        name = f"f{number}"
        # The programs and variables are those of oak: only the plugin has another name.
        modules[name] = seeded(PLUGIN, fault).replace('SCHEDULER = "oak"', f'SCHEDULER = "{name}"')
        tests += CLASS.format(name=name)
        nodes.append(f"Test{name}::test_{fault.test}")
    return judged(
        tmp_path_factory.mktemp("schedulers"), "scheduler", modules, tests, "TestOak", "Testwrapped", *nodes
    )


@pytest.mark.parametrize("subject", ["TestOak", "Testwrapped"])
def test_a_plugin_that_is_right_passes(verdicts: Verdicts, subject: str) -> None:
    assert not [key for key in verdicts.failed if key[0] == subject], verdicts.said


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=list(FAULTS))
def test_a_fault_is_named(verdicts: Verdicts, number: int) -> None:
    fault = list(FAULTS.values())[number]
    said = verdicts.failed.get((f"Testf{number}", fault.test))
    assert said is not None, verdicts.said
    assert fault.says in said, said
