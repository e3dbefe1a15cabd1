"""The network stack of training: the versions that its modules bring, and what is known of them.

The rows are those by which a plan is judged (`defaults/stacks.py`); here they meet libraries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import hpctrain_job.libraries
from hpctrain.defaults import stacks
from hpctrain.doctor.question import MOST, Answer, Finding, Question, Verdict
from hpctrain.doctor.site import Site, is_version
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import Module
from hpctrain.render.shell import quoted

AREA = "network stack"
SECONDS = 15


def questions(site: Site) -> Iterator[Question]:
    """One shell that loads what training on several nodes loads, and looks at what it would take."""
    network = site.cluster.network
    if network.fabric == "tcp":
        return
    modules = (*(site.cluster.modules.run if site.cluster.modules else ()), *network.modules)
    lines = [_load(Module.parse(entry)) for entry in modules]
    program = (sys.executable, "-I", hpctrain_job.libraries.__file__, *names(site.cluster))
    script = "\n".join((*lines, "exec " + " ".join(map(quoted, program))))

    def judge(answer: Answer) -> Iterator[Finding]:
        yield from judged(site.cluster, answer.out, is_like_nodes=site.is_like_nodes)

    yield Question(
        name="network stack",
        area=AREA,
        fact="what training on several nodes loads",
        argv=("bash", "-lc", script),
        judge=judge,
        expected=" ".join(modules),
        source=network.source,
        seconds=SECONDS,
        hangs="module",
        todo="in a login shell by hand: module load " + " ".join(modules),
    )


def _load(module: Module) -> str:
    name = f" {quoted(module.name)}" if module.name else ""
    return f"module {module.action}{name} >/dev/null 2>&1"


def names(cluster: Cluster) -> tuple[str, ...]:
    """The variables that rows speak of."""
    return tuple(sorted({name for row in stacks.rows(cluster) for name in row.precedent.var}))


def judged(cluster: Cluster, text: str, *, is_like_nodes: bool) -> Iterator[Finding]:
    """What follows from the report of `hpctrain_job.libraries`; none for text that is no report."""
    report = _report(text)
    if report is None:
        return
    parts = {part: row for part, row in report["parts"].items() if row.get("version")}
    for part in sorted({*cluster.network.stack, *parts}):
        yield _part(cluster, part, parts.get(part, {}), is_like_nodes=is_like_nodes)
    if is_like_nodes:
        live_versions = {part: row["version"] for part, row in parts.items()}
        yield from _precedents(cluster, live_versions, report["values"])


def _report(text: str) -> dict[str, Any] | None:
    """The report, behind what the site's shell may have printed."""
    try:
        report = json.loads(text.strip().rpartition("\n")[2])
        is_whole = all(isinstance(report[key], dict) for key in ("parts", "values"))
    except (ValueError, TypeError, KeyError):
        return None
    return report if is_whole else None


def _part(cluster: Cluster, part: str, row: Mapping[str, str], *, is_like_nodes: bool) -> Finding:
    expected, version = cluster.network.stack.get(part, ""), row.get("version", "")
    is_equal = is_version(expected, version)
    if not version or is_equal is None or (not is_equal and not is_like_nodes):
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.OK if is_equal else Verdict.DIFFERS
    return Finding(
        area=AREA,
        fact=f"version of {part}",
        verdict=verdict,
        expected=expected,
        found=f"{version} ({row['path']})" if version else "nothing of it is found here",
        source=cluster.network.source,
        todo=f"mend {part} of [network.stack]" if verdict is Verdict.DIFFERS else "",
        key=("network.stack", part) if version else (),
        value=version or None,
    )


def _precedents(cluster: Cluster, versions: Mapping[str, str], live: Mapping[str, str]) -> Iterator[Finding]:
    """What is known of these versions with the variables of training on two nodes."""
    use = _use(cluster, versions, live)
    met = tuple(stacks.met(cluster, use))
    for row in met:
        precedent = row.precedent
        is_bad = precedent.verdict != "good"
        verdict = Verdict.DIFFERS if is_bad else Verdict.OK
        if precedent.traffic != "any" and is_bad:
            verdict = Verdict.UNKNOWN
        yield Finding(
            area=AREA,
            fact=f"{precedent.name}: {stacks.text_of(precedent, use)}",
            verdict=verdict,
            found=(precedent.effect + (" (training with experts)" if precedent.traffic != "any" else ""))[
                :MOST
            ],
            todo=f"{precedent.cure} ({row.origin})" if is_bad else "",
        )
    if not any(row.precedent.verdict != "good" for row in met):
        found_text = f"none of {len(tuple(stacks.rows(cluster)))} is met"
        yield Finding(area=AREA, fact="what is known to go wrong", verdict=Verdict.OK, found=found_text)


def _use(cluster: Cluster, versions: Mapping[str, str], live: Mapping[str, str]) -> stacks.Use:
    values, unknown = dict(live), set()
    environment = cluster.defaults.get("environment", {})
    technology = environment.get("use") if isinstance(environment, dict) else None
    for var in cluster.network.var:
        if technology in var.unless:
            unknown.add(var.name)
        elif var.nodes != "one" and var.how == "set":
            values[var.name] = var.value
        elif var.nodes != "one" and var.how == "default":
            values.setdefault(var.name, var.value)
    return stacks.Use(
        nodes=2,
        stack={**cluster.network.stack, **versions},
        values={name: value for name, value in values.items() if "$" not in value},
        unknown=frozenset(unknown),
        is_whole=not unknown,
        scheduler_words=cluster.network.ask.get(cluster.scheduler, ()),
        all_to_all=True,
    )
