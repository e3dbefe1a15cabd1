"""A whole examination: every question of a site, in an order that gives the fast answers first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hpctrain.doctor import ages, machine, modules, network, scheduler, stack, storage, verify
from hpctrain.doctor.question import Answer, Examined, Finding, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain.hooks import load
from hpctrain.model.cluster import Cluster

AREAS = (machine, scheduler, storage, modules, stack, network, verify, ages)
EXIT = {Verdict.OK: 0, Verdict.UNKNOWN: 0, Verdict.SILENT: 6, Verdict.DIFFERS: 7}
"""The classes of errors: 6 is not reachable, 7 is not what was promised."""


def site_of(cluster: Cluster, environ: Mapping[str, str], account: str) -> Site:
    """The cluster with the plugin of its scheduler."""
    plugin = load.load(load.find("schedulers", cluster.scheduler))
    return Site(cluster=cluster, scheduler=plugin, environ=environ, account=account)


def questions(site: Site) -> tuple[Question, ...]:
    """All of them; the same facts have the same ones everywhere."""
    return tuple(question for area in AREAS for question in area.questions(site))


def examined(answers: Iterable[tuple[Question, Answer]]) -> Examined:
    """What follows from the answers, a line told twice once."""
    lines: dict[Finding, None] = {}
    for question, answer in answers:
        lines.update(dict.fromkeys(question.findings(answer)))
    return tuple(lines)


def exit_code(findings: Iterable[Finding]) -> int:
    """By the worst of them."""
    return max((EXIT[finding.verdict] for finding in findings), default=0)


def counted(findings: Iterable[Finding]) -> Iterator[tuple[Verdict, int]]:
    """How many lines there are of each verdict."""
    verdicts = [finding.verdict for finding in findings]
    for verdict in Verdict:
        yield verdict, verdicts.count(verdict)
