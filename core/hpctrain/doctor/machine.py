"""The login node itself: its name and architecture, system, compilers, driver, limits of a login."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from hpctrain.defaults.names import NATIVE
from hpctrain.doctor.question import Answer, Finding, Question, Verdict, first_line
from hpctrain.doctor.site import Site, is_version

AREA = "machine"
DRIVERS = {
    "cuda": ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
    "rocm": ("cat", "/sys/module/amdgpu/version"),
}
"""What tells the version of a GPU's driver."""
PROSE = {
    "os": ("system", ("sh", "-c", '. /etc/os-release && echo "$PRETTY_NAME"; uname -r')),
    "compilers": ("compiler", ("gcc", "-dumpfullversion")),
    "apptainer": ("container engine apptainer", ("apptainer", "--version")),
}
"""Keys of `[facts.system]` that one program answers."""
LIMITS = 'echo "open files $(ulimit -n), processes $(ulimit -u), CPU seconds $(ulimit -t)"'
MEMORY = """\
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
if [ -z "$own" ]; then echo "version 1, or none"; exit; fi
most=max
while :; do
  file=/sys/fs/cgroup$own/memory.max
  if [ -r "$file" ] && [ "$(cat "$file")" != max ]; then most="$(cat "$file") bytes"; break; fi
  [ -n "$own" ] && [ "$own" != / ] || break
  own=${own%/*}
done
echo "version 2, memory $most"
"""


def questions(site: Site) -> Iterator[Question]:
    """What is asked of every login node."""
    yield _name(site)
    yield _architecture(site)
    for key in PROSE:
        yield from _prose(site, key)
    yield from driver(site)
    yield _unjudged("python", "Python of hpctrain", (sys.executable, "--version"))
    yield limits()
    yield cgroup()


def limits() -> Question:
    """What a shell may open, start and use."""
    return _unjudged("limits", "limits of a shell (ulimit)", ("bash", "-c", LIMITS))


def cgroup() -> Question:
    """The memory that the shell's cgroup has."""
    return _unjudged("cgroup", "cgroup of this shell", ("sh", "-c", MEMORY))


def _name(site: Site) -> Question:
    patterns = site.cluster.detect

    def judge(answer: Answer) -> Iterator[Finding]:
        name = first_line(answer.out)
        if not patterns:
            yield question.finding(Verdict.UNKNOWN, name)
        elif name and answer.code == 0:
            is_known = any(re.search(pattern, name) for pattern in patterns)
            mend = f"on a login node of {site.cluster.name}, mend `detect` of its facts; elsewhere nothing"
            yield question.finding(
                Verdict.OK if is_known else Verdict.DIFFERS, name, "" if is_known else mend
            )

    question = Question(
        name="name",
        area=AREA,
        fact="name of the login node",
        argv=("hostname", "-f"),
        judge=judge,
        expected=" or ".join(patterns),
        todo="the name service may be slow or broken: `hostname -f` by hand",
    )
    return question


def _architecture(site: Site) -> Question:
    login = site.here
    arch = (login.arch if login else "") or site.cluster.arch
    expected = "" if arch == NATIVE else arch

    def judge(answer: Answer) -> Iterator[Finding]:
        shown_arch = first_line(answer.out)
        if not shown_arch or answer.code != 0:
            return
        if not expected:
            yield question.finding(Verdict.UNKNOWN, shown_arch)
        elif expected == {"arm64": "aarch64"}.get(shown_arch, shown_arch):
            yield question.finding(Verdict.OK, shown_arch)
        else:
            mend = "what is built here may not run on the nodes: `arch` of the place of login"
            yield question.finding(Verdict.DIFFERS, shown_arch, mend)

    question = Question(
        name="architecture",
        area=AREA,
        fact="architecture of the login node",
        argv=("uname", "-m"),
        judge=judge,
        expected=expected,
        source=login.source if login else "",
    )
    return question


def _prose(site: Site, key: str) -> Iterator[Question]:
    """A fact in words; only a version in it can be compared, and a system's is written in many ways."""
    expected, source = site.prose(key)
    fact, argv = PROSE[key]

    def judge(answer: Answer) -> Iterator[Finding]:
        text = ", ".join(line for line in answer.out.splitlines() if line)
        if text and answer.code == 0:
            verdict = Verdict.UNKNOWN if key == "os" else _of_version(expected, text)
            mend = f"mend [facts.system] {key}" if verdict is Verdict.DIFFERS else ""
            yield question.finding(verdict, text, mend)

    question = Question(
        name=f"system {key}",
        area=AREA,
        fact=fact,
        argv=argv,
        judge=judge,
        expected=expected,
        source=source,
        silence=Verdict.UNKNOWN,
    )
    if expected or key == "os":
        yield question


def driver(site: Site) -> Iterator[Question]:
    """The version of the GPUs' driver, where a program tells it."""
    argv = DRIVERS.get(site.cluster.hardware.gpu_kind)
    if argv is None:
        return
    expected, source = site.prose("driver")

    def judge(answer: Answer) -> Iterator[Finding]:
        text = first_line(answer.out)
        if answer.code != 0 or not re.match(r"\d+\.", text):
            yield question.finding(Verdict.UNKNOWN, "this node has no such GPU", in_job)
            return
        verdict = _of_version(expected, text)
        yield question.finding(
            verdict, text, "mend [facts.system] driver" if verdict is Verdict.DIFFERS else ""
        )

    in_job = f"in a job: {' '.join(argv)}"
    question = Question(
        name="driver",
        area=AREA,
        fact="driver of the GPUs",
        argv=argv,
        judge=judge,
        expected=expected,
        source=source,
        silence=Verdict.UNKNOWN,
        todo=in_job,
    )
    yield question


def _of_version(expected: str, text: str) -> Verdict:
    is_equal = is_version(expected, text)
    return Verdict.UNKNOWN if is_equal is None else Verdict.OK if is_equal else Verdict.DIFFERS


def _unjudged(name: str, fact: str, argv: tuple[str, ...]) -> Question:
    """What no fact speaks of and everybody who helps asks for."""

    def judge(answer: Answer) -> Iterator[Finding]:
        text = first_line(answer.out)
        if text and answer.code == 0:
            yield question.finding(Verdict.UNKNOWN, text)

    question = Question(name=name, area=AREA, fact=fact, argv=argv, judge=judge, hangs=name)
    return question
