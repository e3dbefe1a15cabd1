"""What a machine answered, in a file that its user can hand on: nothing in it tells who asked.

A capture is read again with the facts of the cluster: the same questions, these answers.
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from hpctrain.doctor import examination
from hpctrain.doctor.question import Answer, Examined, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain.errors import ConfigError
from hpctrain.run.system import files
from hpctrain.run.system.scrub import HIDDEN, scrub
from hpctrain.run.this_computer import now

SCHEMA = "hpctrain/capture/1"
MOST = 2_000_000
"""Bytes of a capture; the answers of a large site have some hundred thousand."""
SECRET_NAMES = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|COOKIE|AUTH", re.IGNORECASE)
FIRST_OF_USERS = 1000
"""Numbers of users and groups below it are the system's own, and name nobody."""
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMES_OF_OTHERS = re.compile(r"\b((?:Allow|Deny)(?:Accounts|Groups)=)(?!ALL\b|N/A|\(null\))\S+")

_YOURS = "what was said names you or your project, and is not in this file"

Answers = Iterable[tuple[Question, Answer]]


def write(path: Path, site: Site, answers: Answers) -> None:
    """The answers without names and secrets, in a new file that its user alone can read."""
    pairs = list(answers)
    redact = _Redactor(site, pairs)
    document = {
        "schema": SCHEMA,
        "cluster": site.cluster.name,
        "at": now(),
        "answers": {q.name: redact.answered(q, answer) for q, answer in pairs if q.argv},
    }
    with files.naming(path):
        files.write_new(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


@frozen(kw_only=True)
class Capture:
    """What stands in such a file."""

    cluster: str
    answers: Mapping[str, Answer]
    """By the names of the questions."""


def examined(path: Path, site: Site) -> Examined:
    """What follows for these facts from the answers in a file; what it does not answer is left out."""
    answers = read(path, site.cluster.name).answers
    pairs = ((question, answers.get(question.name)) for question in examination.questions(site))
    return examination.examined((question, answer) for question, answer in pairs if answer and question.argv)


def read(path: Path, cluster: str = "") -> Capture:
    """The file of a stranger, of this cluster where one is named."""
    with files.naming(path, "read"), path.open("rb") as stream:
        text = stream.read(MOST)
    try:
        document = json.loads(text)
        answers = {str(name): Answer(**row) for name, row in document["answers"].items()}
        schema, captured_cluster = document["schema"], document["cluster"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        answers, schema, captured_cluster = {}, "", ""
    is_one = schema == SCHEMA and isinstance(captured_cluster, str) and cluster in ("", captured_cluster)
    if not is_one or not all(_is_whole(answer) for answer in answers.values()):
        name = cluster or "a cluster"
        hint = f"hpctrain doctor {cluster} --capture FILE      (on a login node)".replace("  --", " --")
        raise ConfigError.of("capture", f"{path} is no capture of {name}", hint=hint)
    return Capture(cluster=captured_cluster, answers=answers)


def _is_whole(answer: Answer) -> bool:
    texts = (answer.out, answer.err, answer.fault)
    return type(answer.code) is int and all(isinstance(text, str) for text in texts)


class _Redactor:
    """Takes out of text who asked, and what that user alone may know."""

    def __init__(self, site: Site, answers: Answers) -> None:
        words = dict(_identity(site.environ))
        words |= {site.cluster.project_of(site.account): "PROJECT"}
        accounts = (site.account, *_accounts(site, answers))
        # `brics.p1` is the project p1, whose name stands in paths and behind names of users
        words |= {part: "PROJECT" for name in accounts for part in name.split(".")[1:]}
        words |= dict.fromkeys(accounts, "ACCOUNT")
        self._secrets = [value for name, value in site.environ.items() if SECRET_NAMES.search(name)]
        self._words = {word.lower(): stand_in for word, stand_in in words.items() if word}
        longest = sorted(self._words, key=len, reverse=True)
        joined = "|".join(map(re.escape, longest)) or r"(?!)"
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{joined})(?![A-Za-z0-9])", re.IGNORECASE)

    def answered(self, question: Question, answer: Answer) -> dict[str, Any]:
        """The answer as JSON has it. One that is judged otherwise without the names that were taken out
        counts as not given: whoever reads the file would find a difference that the machine has not."""
        fields: dict[str, Any] = {
            name: self.text(value) if isinstance(value, str) else value
            for name, value in attrs.asdict(answer).items()
        }
        if _differing(question, Answer(**fields)) != _differing(question, answer):
            fields["fault"] = _YOURS
        return fields

    def text(self, text: str) -> str:
        text = scrub(text, self._secrets)
        text = _MAIL.sub(HIDDEN, text)
        text = _NAMES_OF_OTHERS.sub(r"\1ACCOUNT", text)
        return self._names.sub(lambda match: self._words[match[0].lower()], text)


def _differing(question: Question, answer: Answer) -> set[str]:
    return {line.fact for line in question.findings(answer) if line.verdict is Verdict.DIFFERS}


def _identity(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names, numbers, folders and addresses of this user, each with what stands in its place.

    Of two that are spelled alike the last holds. root is everybody's, and its number is every 0.
    """
    for group in os.getgroups():
        if group >= FIRST_OF_USERS:
            yield str(group), "GROUP"
            with contextlib.suppress(KeyError):
                yield grp.getgrgid(group).gr_name, "GROUP"
    if os.getuid() >= FIRST_OF_USERS:
        yield str(os.getuid()), "UID"
        with contextlib.suppress(KeyError):
            entry = pwd.getpwuid(os.getuid())
            yield entry.pw_gecos.partition(",")[0], "NAME"
            yield entry.pw_dir, "HOME"
            yield entry.pw_name, "USER"
    for name in ("USER", "LOGNAME"):
        yield ("" if environ.get(name) == "root" else environ.get(name, "")), "USER"
    yield environ.get("HOME", ""), "HOME"
    for name in ("SSH_CLIENT", "SSH_CONNECTION"):
        yield environ.get(name, "").partition(" ")[0], "ADDRESS"


def _accounts(site: Site, answers: Answers) -> Iterator[str]:
    """The accounts that the scheduler told of."""
    for question, answer in answers:
        if question.area == "scheduler" and question.argv and hasattr(site.scheduler, "live_facts"):
            name = question.name.removeprefix("scheduler ")
            for reading in site.scheduler.live_facts({name: answer.out}):  # type: ignore[union-attr]
                if (reading.table, reading.key) == ("policy", "accounts"):
                    yield from reading.value
