"""Rows of `[[verify]]`: commands that were written for a person, run for him where no job is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hpctrain.doctor.question import MOST, Answer, Finding, Question, Verdict, stated
from hpctrain.doctor.site import Site
from hpctrain.model.cluster import Verify
from hpctrain.render.shell import quoted

AREA = "verify"
SECONDS = 10
ACCOUNT = "ACCOUNT"
"""What rows write for the user's account."""
QUIETLY = "export APPTAINER_CONFIGDIR=/proc/nowhere\n"
"""In front of each: Apptainer makes a folder in every home in which it is asked something."""
_NO_COMMAND = re.compile(r"(\S+): (?:command )?not found")
_IN_TROUBLE = re.compile(
    r"^[\w.-]+: error: .*|.*(?:not running|refused|timed out|unable to contact|permission denied).*",
    re.IGNORECASE | re.MULTILINE,
)
"""What a program says that cannot ask its server; what is missing is told in other words."""
_NO_SERVER = re.compile(
    r"^s\w+: error: (?:resolve_ctls_from_dns_srv|fetch_config|.*unable to contact).*", re.MULTILINE
)
"""What Slurm's programs say where no Slurm is: a row's other programs may have answered."""


def questions(site: Site) -> Iterator[Question]:
    """Each row, in the order of the facts."""
    starts_job: Callable[[str], bool] | None = getattr(site.scheduler, "starts_job", None)
    for row in site.cluster.verify:
        name = f"verify {row.command}"
        if starts_job is None:
            reason = f"the plugin of {site.cluster.scheduler} does not say which commands start jobs"
            yield stated(name, _line(row, Verdict.UNKNOWN, reason, f"by hand: {row.command}"))
        elif starts_job(row.command):
            yield stated(name, _line(row, Verdict.UNKNOWN, "needs a job", f"by hand: {row.command}"))
        elif ACCOUNT in row.command.split() and not site.account:
            yield stated(
                name, _line(row, Verdict.SILENT, "no account given", "hpctrain doctor --account ACCOUNT")
            )
        else:
            yield _question(name, row, site.account)


def _question(name: str, row: Verify, account: str) -> Question:
    command = re.sub(rf"(?<!\S){ACCOUNT}(?!\S)", lambda _: quoted(account), row.command)

    def judge(answer: Answer) -> Iterator[Finding]:
        text = answer.out if answer.code else answer.out + answer.err  # an error repeats what it did not find
        lines = (line.strip() for line in (answer.out + answer.err).splitlines())
        answer_text = " / ".join(line for line in lines if line)[:MOST] or "nothing"
        by_hand = f"by hand: {row.command}"
        if row.expect and (match := re.search(row.expect, text, re.MULTILINE)):
            yield _line(row, Verdict.OK, _line_of(text, match.start())[:MOST])
        elif absent := _NO_COMMAND.search(answer.out + answer.err):
            yield _line(row, Verdict.SILENT, f"{absent[1]} is not here", by_hand)
        elif trouble := (_NO_SERVER if answer.out.strip() else _IN_TROUBLE).search(answer.err):
            yield _line(row, Verdict.SILENT, trouble[0], by_hand)
        elif row.expect:
            yield _line(row, Verdict.DIFFERS, answer_text, f"{by_hand}; then mend what rests on it")
        else:
            yield _line(row, Verdict.UNKNOWN, answer_text)

    return Question(
        name=name,
        area=AREA,
        fact=row.fact,
        argv=("bash", "-lc", QUIETLY + command),
        judge=judge,
        expected=row.expect,
        seconds=SECONDS,
        inherit=True,
        hangs=name,
        todo=f"by hand: {row.command}",
    )


def _line(row: Verify, verdict: Verdict, text: str, todo: str = "") -> Finding:
    return Finding(area=AREA, fact=row.fact, verdict=verdict, expected=row.expect, found=text, todo=todo)


def _line_of(text: str, place: int) -> str:
    """The line of the text in which this character is."""
    return text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0].strip()
