"""The tests of what every job owes its user: one a tag, a warning in time, an end that is not too early.

No other part of hpctrain can do it in a scheduler's place, and nobody misses it before a training is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan
from hpctrain.testing.base import none
from hpctrain.testing.scheduler import LAUNCH, WORDS, Request, SchedulerBase, with_resources

DUTIES: Mapping[str, str] = {
    "tag": "two jobs with one tag would both train: say how job.sh reads its HPC_TAG in Shape.tag",
    "notice": "a training is killed at its time limit and saves nothing: ask the scheduler for USR1 before "
    "it, or say Shape.notice, which needs Shape.tag",
    "mail": "JobFiles.mails promises mail, and no script and no word of `submit` has the address",
    "requeue": "one job that is queued again would end after one attempt: define hpc_requeue in the job's "
    "lines, or let check_run refuse [resources] requeue",
    "total": "the jobs that a limit leaves out would never come: say Shape.handover, or let check_run refuse "
    "or warn of [resources] total",
}
"""What a job of a training does, and what happens where it does not."""
MAIL = "kit@example.org"


class DutyChecks(SchedulerBase):
    """What a training loses by a plugin that says nothing wrong and leaves something out."""

    def test_two_jobs_of_one_tag_train_once(self) -> None:
        request = self.subject_here().request
        self._owes("tag", request, request.plan, r"^hpc_claim ")

    def test_a_training_is_warned_before_its_time_limit(self) -> None:
        request = self.subject_here().request
        self._owes("notice", request, request.plan, r"USR1|^hpc_notice \d")

    def test_mail_that_is_promised_is_asked_for(self) -> None:
        request = self.subject_here().request
        plan = with_resources(request.plan, mail=MAIL)
        if request.files(plan).mails:  # else core itself refuses the run
            self._owes("mail", request, plan, re.escape(MAIL))

    def test_a_job_is_queued_again_or_that_is_refused(self) -> None:
        request = self.subject_here().request
        plan = with_resources(request.plan, total=Duration.parse("10h"), requeue=True)
        self._owes("requeue", request, plan, r"^hpc_requeue\(\)")

    def test_jobs_hand_over_the_next_or_that_is_refused(self) -> None:
        request = self.subject_here().request
        self._owes("total", request, _two_at_once(request.plan), r"^steps/train/next\.sh$")

    def test_what_is_ignored_exists_and_has_a_reason(self) -> None:
        names = {*LAUNCH, *WORDS, *DUTIES, "jobs_per_user"}
        none(sorted(set(self.ignores) - names), "`ignores` names nothing of the kit:")
        none(
            sorted(n for n, why in self.ignores.items() if not why.strip()), "`ignores` gives no reason for:"
        )

    def _owes(self, duty: str, request: Request, plan: Plan, pattern: str) -> None:
        self.may_ignore(duty)
        if not re.search(pattern, request.text(plan), re.MULTILINE) and not request.names(plan, duty):
            none([DUTIES[duty]])


def _two_at_once(plan: Plan) -> Plan:
    """A training of ten hours in a queue that takes two jobs of a user."""
    rows = tuple(attrs.evolve(row, jobs_per_user=2) for row in plan.cluster.queue)
    steps = tuple(attrs.evolve(planned, queue=rows[-1].name) for planned in plan.steps)
    cluster = attrs.evolve(plan.cluster, queue=rows)
    return with_resources(attrs.evolve(plan, cluster=cluster, steps=steps), total=Duration.parse("10h"))
