"""A site for the doctor's questions: real facts, and stand-ins for the programs of a login node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpctrain.doctor import examination
from hpctrain.doctor.asking import Asker
from hpctrain.doctor.question import Answer, Examined, Finding, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain.model.cluster import Cluster
from hpctrain.run.system.tools import Tools
from hpctrain.runfile.facts import load_cluster
from tests.clusters import HOMES

SYSTEM = "/usr/bin:/bin"


def cluster(name: str) -> Cluster:
    """One of ours, as its facts have it."""
    return load_cluster(HOMES[name])


def site(facts: Cluster, account: str = "abc123", **environ: str) -> Site:
    """Somebody on its login node."""
    base = {"PATH": SYSTEM, "HOME": "/home/me", "USER": "me", **environ}
    return examination.site_of(facts, base, account)


def question(questions: Iterable[Question], name: str) -> Question:
    """The one of this name."""
    return next(q for q in questions if q.name == name)


def findings(asked: Question, out: str = "", **more: Any) -> dict[str, Finding]:
    """Fact -> line, after this answer."""
    answer = Answer(out=out, **more)
    return {finding.fact: finding for finding in asked.findings(answer)}


def verdicts(lines: Mapping[str, Finding]) -> dict[str, Verdict]:
    """Fact -> verdict."""
    return {fact: finding.verdict for fact, finding in lines.items()}


def programs(folder: Path, **texts: str) -> str:
    """A PATH with these programs in front of the system's; each text is the body of a shell script."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    return f"{folder}:{SYSTEM}"


def examined(one: Site, questions: Iterable[Question], seconds: float = 20) -> Examined:
    """The lines of these questions, asked of this machine with the stand-ins on the site's PATH."""
    tools = Tools(one.environ, grace=0.2)
    return examination.examined(Asker(tools, seconds).answers(questions))
