"""`hpctrain clusters NAME --against FILE`: what a machine answered otherwise, as a patch of its facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpctrain.cli.out import Out
from hpctrain.doctor import capture, examination
from hpctrain.doctor.question import Finding, Verdict
from hpctrain.model.cluster import Cluster


def show(out: Out, cluster: Cluster, file: Path) -> int:
    """The values to take over, then in comments what differs and has no key of its own."""
    site = examination.site_of(cluster, {}, "ACCOUNT")
    differing = [f for f in capture.examined(file, site) if f.verdict is Verdict.DIFFERS]
    if out.flags.json:
        out.document("against", cluster=cluster.name, facts=[_row(finding) for finding in differing])
    elif not differing:
        out.lines([f"{file} agrees with the facts of {cluster.name}"])
    else:
        out.lines(_patch(differing))
    return examination.exit_code(differing)


def _row(finding: Finding) -> dict[str, object]:
    return {
        "fact": finding.fact,
        "expected": finding.expected,
        "found": finding.found,
        "key": list(finding.key),
        "value": finding.value,
    }


def _patch(findings: Iterable[Finding]) -> Iterator[str]:
    by_place: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        by_place.setdefault(finding.key[:-1], []).append(finding)
    for finding in by_place.pop((), []):
        yield f"# {finding.fact}: expected {finding.expected or 'nothing'}, found {finding.found}"
    for place, lines in by_place.items():
        yield ""
        yield from (f"[[{place[0]}]]", f"name = {_toml(place[1])}") if place[1:] else (f"[{place[0]}]",)
        for finding in lines:
            yield f"{finding.key[-1]} = {_toml(finding.value)}    # the facts have {finding.expected}"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
