"""The tests of a scheduler's scripts: whatever a run or a site says reaches it, or is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, ClassVar

import attrs
import pytest
from attrs import frozen

from hpctrain.hooks.load import load
from hpctrain.hooks.manager import Hooks
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobFiles
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.step import Ranks
from hpctrain.model.words import Var, words_in
from hpctrain.render import shell
from hpctrain.session import Session
from hpctrain.testing.base import none
from hpctrain.testing.hostile import VALUES
from hpctrain.testing.scripts import header_is_inert
from hpctrain.testing.subject import binding_of, environ
from hpctrain.testing.technology import (
    COMMAND,
    MACHINE,
    READY,
    TechnologyBase,
    TechnologySubject,
    temporary_folder,
)

TWO_NODES = MACHINE / "two-nodes.toml"
QUEUE = """
[[queue]]
name   = "kit"
source = "kit"
ask    = {{ {scheduler} = ["--kit-queue"] }}
"""
OF_JOB = ("HPC_JOB", "HPC_NODES", "HPC_GPUS", "HPC_HEAD", "HPC_ATTEMPT")
OF_RANK = ("HPC_RANK", "HPC_LOCAL_RANK", "HPC_NODE_RANK", "HPC_WORLD")

LAUNCH: Mapping[str, Any] = {
    "ranks": Ranks.PER_NODE,
    "nodes": 1,
    "gpus_per_node": 1,
    "cpus_per_rank": 5,
    "memory_gb": 77,
    "bind": "closest",
    "visible": "one",
    "prefix": ("kit-prefix",),
    "rank_prefix": ("kit-rank-prefix",),
}
"""Every field of Launch with another value than the kit's run has: ranks on two GPUs of each of two nodes."""


def _around(field: str) -> Callable[[Plan, str], Plan]:
    """Words for the scheduler in the layers of every step: `ask` or `starter`."""

    def change(plan: Plan, scheduler: str) -> Plan:
        words: Any = {scheduler: (f"--kit-{field}",)}
        steps = (attrs.evolve(p, around=attrs.evolve(p.around, **{field: words})) for p in plan.steps)
        return attrs.evolve(plan, steps=tuple(steps))

    return change


def _resources(**values: Any) -> Callable[[Plan, str], Plan]:
    return lambda plan, _: with_resources(plan, **values)


def with_resources(plan: Plan, **values: Any) -> Plan:
    """The plan of a run file that says this in [resources]."""
    resources = attrs.evolve(plan.run.resources, **values)
    return attrs.evolve(plan, run=attrs.evolve(plan.run, resources=resources))


def _by_user(plan: Plan, scheduler: str, words: tuple[str, ...]) -> Plan:
    """Words of the run file: they stand in [resources], and in what is around training."""
    steps = (
        attrs.evolve(p, around=attrs.evolve(p.around, ask={scheduler: words})) if p.step.trains else p
        for p in plan.steps
    )
    return attrs.evolve(with_resources(plan, ask={scheduler: words}), steps=tuple(steps))


def _facts(table: str, **values: Any) -> Callable[[Plan, str], Plan]:
    def change(plan: Plan, _: str) -> Plan:
        facts = attrs.evolve(getattr(plan.cluster, table), **values)
        return attrs.evolve(plan, cluster=attrs.evolve(plan.cluster, **{table: facts}))

    return change


WORDS: Mapping[str, tuple[Callable[[Plan, str], Plan], str]] = {
    "time": (_resources(time=Duration.parse("37m")), "[resources] time"),
    "account": (_resources(account="kit-account"), "[resources] account"),
    "ask": (lambda plan, name: _by_user(plan, name, ("--kit-user",)), "[resources] ask"),
    "queue": (
        lambda plan, _: attrs.evolve(plan, steps=tuple(attrs.evolve(p, queue="kit") for p in plan.steps)),
        "`ask` of a [[queue]]",
    ),
    "layer": (_around("ask"), "`ask` of a layer, a [[place]] or [network]"),
    "starter": (_around("starter"), "`starter` of a layer"),
    "submit_env": (_facts("policy", submit_env=("KIT_VARIABLE",)), "[policy] submit_env"),
    "gpu_request": (_facts("launch", gpu_request="none"), "[launch] gpu_request"),
}
"""What else people say, by the word that a refusal must name: how the plan changes, and where they say it."""


@frozen
class Request:
    """The training of a plan on two nodes, and what the scheduler makes of it."""

    session: Session
    plan: Plan
    binding: Binding
    scheduler_hooks: Hooks
    """The scheduler's hooks alone: what core says of a run is no answer of theirs."""

    def files(self, plan: Plan) -> JobFiles:
        """The step's scripts and the command that submits it."""
        step = plan.step_named("train")
        rendered = self.session.hooks.need("render_job", step=step, plan=plan, binding=self.binding)
        assert isinstance(rendered, JobFiles)
        return rendered

    def text(self, plan: Plan) -> str:
        """All that bash and the scheduler would read."""
        rendered = self.files(plan)
        scripts = "".join(f"{path}\n{text}" for path, text in sorted(rendered.files.items()))
        return f"{scripts}\n{shell.words(rendered.submit.argv, self.binding)}"

    def names(self, plan: Plan, word: str) -> bool:
        """Whether the scheduler says something wrong or doubtful that names `word`."""
        problems = self.scheduler_hooks.call("check_run", run=plan.run, cluster=plan.cluster, plan=plan)
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        texts = (f"{p.message} {p.where} {p.hint}" for answer in problems for p in answer)
        return any(pattern.search(text) for text in texts)


class SchedulerSubject(TechnologySubject):
    """A scheduler on the kit's machine: a site file says that it is the one there."""

    @cached_property
    def request(self) -> Request:
        """The plan that is changed by the tests."""
        session = self.session(TWO_NODES)
        hooks = Hooks()
        hooks.add(self.entry, load(self.entry))
        return Request(session, session.plan(), binding_of(session), hooks)


class SchedulerBase(TechnologyBase):
    """The attributes that a subclass sets."""

    scheduler: ClassVar[str] = ""
    """The name that a cluster says: `scheduler = "slurm"`."""
    ignores: ClassVar[Mapping[str, str]] = {}
    """What means nothing to this scheduler, by names of LAUNCH, WORDS, DUTIES or `jobs_per_user`, with
    reasons."""
    kind = "schedulers"
    hooks = ("render_job", "submit_job", "query_jobs", "cancel_jobs")

    @classmethod
    def subject_here(cls) -> SchedulerSubject:
        return scheduler_subject(cls.scheduler, cls.account, cls.sets)

    def may_ignore(self, name: str) -> None:
        """Leave the test out where the author says why this means nothing to the scheduler."""
        if reason := self.ignores.get(name):
            pytest.skip(reason)


@cache
def scheduler_subject(scheduler: str, account: str, sets: tuple[str, ...]) -> SchedulerSubject:
    """The subject of a test class; its plan is shared by all tests."""
    subject = SchedulerSubject(
        "schedulers", scheduler, cluster="local", examples=(), account=account, sets=(*COMMAND, *READY, *sets)
    )
    folder = temporary_folder()
    facts = (MACHINE / "local.toml").read_text(encoding="utf-8")
    text = f"scheduler = {json.dumps(scheduler)}\n{facts}{QUEUE.format(scheduler=scheduler)}"
    (folder / "local.toml").write_text(text, encoding="utf-8")
    subject.environ = environ(str(folder))
    return subject


class RequestChecks(SchedulerBase):
    """Nothing in silence: what is said is seen in the scripts, or refused or warned about by name."""

    @pytest.fixture
    def request_here(self) -> Request:
        """The training whose plan is changed."""
        return self.subject_here().request

    @pytest.mark.parametrize("field", LAUNCH)
    def test_every_field_of_launch_is_seen(self, request_here: Request, field: str) -> None:
        self.may_ignore(field)
        plan = _with_launch(request_here.plan, **{field: LAUNCH[field]})
        if request_here.text(plan) == request_here.text(request_here.plan):
            none(_silent(request_here, plan, f"Launch.{field} = {LAUNCH[field]!r}", field))

    @pytest.mark.parametrize("word", WORDS)
    def test_every_word_for_the_scheduler_is_seen(self, request_here: Request, word: str) -> None:
        self.may_ignore(word)
        change, place = WORDS[word]
        before = attrs.evolve(
            request_here.plan, steps=tuple(attrs.evolve(p, queue="") for p in request_here.plan.steps)
        )
        plan = change(before, self.scheduler)
        if request_here.text(plan) == request_here.text(before):
            none(_silent(request_here, plan, place, "ask" if word == "layer" else word))

    def test_what_a_user_says_is_in_no_directive(self, request_here: Request) -> None:
        words = (*VALUES, "--kit-user")
        plan = _by_user(request_here.plan, self.scheduler, words)
        if request_here.names(plan, "ask"):
            return  # refusing them is as good
        files = request_here.files(plan).files
        header_is_inert({path: text for path, text in files.items() if path.endswith(".sh")})
        none(
            (
                f"{path}:{number}: {line}"
                for path, text in files.items()
                for number, line in enumerate(text.splitlines(), 1)
                if line.startswith("#") and "--kit-user" in line
            ),
            "[resources] ask stands in a directive, where a newline would begin another; put it into submit:",
        )

    def test_a_job_is_found_by_its_tag_and_waits_for_others(self, request_here: Request) -> None:
        words = [
            word for part in request_here.files(request_here.plan).submit.argv for word in words_in(part)
        ]
        # Core itself refuses a job without its tag.
        assert Var("HPC_AFTER") in words, (
            "no word of `submit` has Var('HPC_AFTER'): the job would start before what it waits for"
        )

    def test_jobs_and_ranks_know_who_they_are(self, request_here: Request) -> None:
        texts = request_here.files(request_here.plan).files.values()
        none(
            (
                name
                for name in (*OF_JOB, *OF_RANK)
                if not any(re.search(rf"\b{name}=", text) for text in texts)
            ),
            "no script sets what every step reads:",
        )


def _with_launch(plan: Plan, **fields: Any) -> Plan:
    steps = (
        attrs.evolve(p, step=attrs.evolve(p.step, launch=attrs.evolve(p.step.launch, **fields)))
        if p.step.trains
        else p
        for p in plan.steps
    )
    return attrs.evolve(plan, steps=tuple(steps))


def _silent(request: Request, plan: Plan, place: str, word: str) -> list[str]:
    """A complaint where nothing changed and nobody said so."""
    if request.names(plan, word):
        return []
    return [f"{place} changes no script and no word of `submit`, and no problem of check_run names {word!r}"]
