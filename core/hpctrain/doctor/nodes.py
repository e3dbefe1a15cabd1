"""What compute nodes alone can tell: their GPUs, driver and libraries, memory, disk, fabric, clock, network.

The questions are those of a login node's kind; one job asks them on every node (`hpctrain_job.node_answers`),
and the lines on which all nodes agree are told once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from hpctrain.doctor import machine, network, stack, storage, together
from hpctrain.doctor.question import Answer, Examined, Finding, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain.errors import ConfigError
from hpctrain.model.plan import Binding
from hpctrain.model.step import Need
from hpctrain.model.words import template
from hpctrain.render.shell import word
from hpctrain_job.files import documents
from hpctrain_job.node_answers import PYTHON

AREA = "compute nodes"
DRIFT = 60
"""Seconds that a node's clock may be off."""
LESS_MEMORY = 0.95
"""Of what the facts say: sites round, and a node's system takes some."""
NO_ROOTS = Binding(roots={}, user="", account="")
GPUS = {
    "cuda": ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"),
    "rocm": ("sh", "-c", "cat /sys/class/drm/card*/device/mem_info_vram_total"),
}
"""What tells the memory of each GPU, one a line."""
GPU_UNITS = {"cuda": 2**20, "rocm": 1}
LESS_GPU_MEMORY = 0.9


def questions(site: Site, nodes: int = 1, python: str = "") -> tuple[Question, ...]:
    """All that is asked of each node; first what they do together, since they begin together. `python` is one
    with torch there."""
    return (
        *([together.question(site, python)] if nodes > 1 else ()),
        *_gpus(site),
        *machine.driver(site),
        *_memory(site),
        *_cores(site),
        *_interface(site),
        *_disk(site),
        *_libraries(site),
        *_hub(site),
        machine.limits(),
        machine.cgroup(),
    )


def document(questions: Sequence[Question]) -> str:
    """The questions as `hpctrain_job.node_answers` reads them."""
    return json.dumps(
        [{"name": q.name, "argv": q.argv, "seconds": q.seconds, "given": q.given} for q in questions],
        indent=1,
    )


def answered(folder: Path) -> dict[str, dict[str, Any]]:
    """Node -> what it left; nodes of one host have their ranks behind it."""
    reports = [_report(path) for path in sorted(folder.glob("*.json"))]
    hosts = [report["host"] for report in reports]
    return {
        host if hosts.count(host) == 1 else f"{host}:{report['rank']}": report
        for host, report in zip(hosts, reports, strict=True)
    }


def _report(path: Path) -> dict[str, Any]:
    try:
        report = documents.read(path)
        answers = {str(name): Answer(**row) for name, row in report["answers"].items()}
        names = {key: str(report[key]) for key in ("host", "rank")}
        return {**names, "began": float(report["began"]), "answers": answers}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError.of("capture", f"{path} is no answer of a node: {error}") from None


def examined(
    questions: Sequence[Question], reports: Mapping[str, Mapping[str, Any]], submitted: float, nodes: int
) -> Examined:
    """The lines of all nodes; `submitted` is the login node's time before the job."""
    by_line: dict[Finding, list[str]] = {}
    for host, report in reports.items():
        for line in _of_node(questions, report, submitted):
            by_line.setdefault(attrs.evolve(line, area=AREA), []).append(host)
    lines = [
        line if len(hosts) == len(reports) else attrs.evolve(line, fact=f"{line.fact}, on {' '.join(hosts)}")
        for line, hosts in by_line.items()
    ]
    counted = Finding(
        area=AREA,
        fact="nodes that answered",
        verdict=Verdict.OK if len(reports) == nodes else Verdict.DIFFERS,
        expected=str(nodes),
        found=f"{len(reports)}: {' '.join(reports)}" if reports else "none",
        todo="" if len(reports) == nodes else "hpctrain logs hpctrain-doctor",
    )
    return (counted, *lines, *together.bandwidth(report["answers"] for report in reports.values()))


def _of_node(questions: Sequence[Question], report: Mapping[str, Any], submitted: float) -> Iterator[Finding]:
    unanswered = Answer(fault="the node did not come so far")
    for question in questions:
        yield from question.findings(report["answers"].get(question.name, unanswered))
    yield _clock(report["began"], submitted, time.time())


def _clock(began: float, submitted: float, now: float) -> Finding:
    """A node began between the submission and now, by this clock; what is outside of that is the node's."""
    ahead = began - now if began > now else min(0.0, began - submitted)
    is_fine = abs(ahead) <= DRIFT
    return Finding(
        area=AREA,
        fact="the clock beside the login node's",
        verdict=Verdict.OK if is_fine else Verdict.DIFFERS,
        expected=f"within {DRIFT} s",
        found="agrees" if is_fine else f"{ahead:+.0f} s",
        todo="" if is_fine else "tell the site: certificates and tokens are judged by this clock",
    )


def _gpus(site: Site) -> Iterator[Question]:
    hardware = site.cluster.hardware
    argv = GPUS.get(hardware.gpu_kind)

    def judge(answer: Answer) -> Iterator[Finding]:
        sizes = [int(line) for line in answer.out.split() if line.isdecimal()]
        if answer.code != 0 or not sizes:
            return
        gigabytes = min(sizes) * GPU_UNITS[hardware.gpu_kind] / 1e9
        is_fine = (
            len(sizes) == hardware.gpus_per_node and gigabytes >= hardware.gpu_memory_gb * LESS_GPU_MEMORY
        )
        yield question.finding(
            Verdict.OK if is_fine else Verdict.DIFFERS,
            f"{len(sizes)} of {gigabytes:.0f} GB",
            "" if is_fine else "a node with fewer is broken: name it to the site; else mend [hardware]",
        )

    if argv:
        question = Question(
            name="gpus",
            area=AREA,
            fact="GPUs of a node",
            argv=argv,
            judge=judge,
            expected=f"{hardware.gpus_per_node} of {hardware.gpu_memory_gb:g} GB",
            source=hardware.source,
            seconds=30,
            todo="no driver, or no GPU was given to the job",
        )
        yield question


def _memory(site: Site) -> Iterator[Question]:
    argv = ("sed", "-n", "s/^MemTotal: *\\([0-9]*\\) kB/\\1/p", "/proc/meminfo")
    yield from _at_least(site, "memory_gb", "memory of a node (GB)", argv, 1024 / 1e9, LESS_MEMORY)


def _cores(site: Site) -> Iterator[Question]:
    yield from _at_least(site, "cores_per_node", "cores of a node", ("getconf", "_NPROCESSORS_ONLN"), 1, 1)


def _at_least(
    site: Site, key: str, fact: str, argv: tuple[str, ...], unit: float, share: float
) -> Iterator[Question]:
    """A number that may be larger than the fact, not smaller."""
    expected = getattr(site.cluster.hardware, key)

    def judge(answer: Answer) -> Iterator[Finding]:
        if answer.out.strip().isdecimal():
            count = int(answer.out) * unit
            is_fine = count >= expected * share
            mend = "" if is_fine else f"mend [hardware] {key}"
            yield question.finding(Verdict.OK if is_fine else Verdict.DIFFERS, f"{count:.0f}", mend)

    if expected:
        question = Question(
            name=key,
            area=AREA,
            fact=fact,
            argv=argv,
            judge=judge,
            expected=f"{expected:g}",
            source=site.cluster.hardware.source,
        )
        yield question


def _interface(site: Site) -> Iterator[Question]:
    name = site.cluster.network.interface

    def judge(answer: Answer) -> Iterator[Finding]:
        names = answer.out.split()
        if names and answer.code == 0:
            is_there = name in names
            todo = "" if is_there else "mend interface of [network], or tell the site"
            yield question.finding(Verdict.OK if is_there else Verdict.DIFFERS, " ".join(names), todo)

    if name:
        question = Question(
            name="interface",
            area=AREA,
            fact="the fast network's interface",
            argv=("ls", "/sys/class/net"),
            judge=judge,
            expected=name,
            source=site.cluster.network.source,
        )
        yield question


def _disk(site: Site) -> Iterator[Question]:
    """A node's own storage, under the path that a job finds."""
    for role, row in site.cluster.storage.items():
        path = row.path
        for field, variable in {"user": "USER", "uid": "UID", "home": "HOME"}.items():
            path = path.replace(f"{{{field}}}", f"${{{variable}}}")
        if row.node_local and "{account}" not in path and "{project}" not in path:
            place = word(template(path), NO_ROOTS)
            question = storage.folder(site, role, row, row.path)
            yield attrs.evolve(question, argv=("bash", "-c", f"set -- {place}\n{storage.LOOK}"))


def _libraries(site: Site) -> Iterator[Question]:
    """The job has loaded what training loads: what is there now is what training would take."""
    if site.cluster.network.fabric != "tcp":
        yield Question(
            name="network stack",
            area=AREA,
            fact="what training on several nodes loads",
            argv=(PYTHON, "-m", "hpctrain_job.libraries", *stack.names(site.cluster)),
            judge=lambda answer: stack.judged(site.cluster, answer.out, is_like_nodes=True),
            source=site.cluster.network.source,
            seconds=30,
        )


def _hub(site: Site) -> Iterator[Question]:
    """The hub and the package index, with the proxy that a job has."""
    place = next((p for p in site.cluster.place if not p.here and Need.GPU in p.provides), None)
    is_open = place is not None and Need.NETWORK in place.provides
    source = place.source if place else ""
    for fact, url in (("the hub", network.HUB), ("the package index", network.INDEX)):
        question = network.web(fact, url, source, is_open=is_open)
        yield attrs.evolve(question, argv=(PYTHON, "-m", "hpctrain_job.reach", "web"))
