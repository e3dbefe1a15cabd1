"""Nodes that died, hung or were unfit under a training, or that a person named: jobs stay away from them.

Each user writes into a folder of his own beside those of others, one file a finding, whole from the moment
it can be seen: writers need no lock. Findings of others count where their owner is accepted, as with
artifacts; a folder or link that somebody else could swap is refused. A finding is forgotten after a day, a
node with findings on two days after a week. `forgiven` takes back what was found before it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents, trust

PLACE, OWNERS = "HPC_BAD_NODES", "HPC_BAD_NODES_OWNERS"
"""In a job: how the folders begin, where the user's number follows; whose findings count, set where the place
is shared with the project."""
FORGIVEN, PERSON = "forgiven", "named"
DAY = 86400.0
WEEK = 7 * DAY
LONGEST = 30 * DAY
"""No finding counts longer, whatever it says."""
LARGEST = 16 << 10
MOST = 4000
"""Files that are read of one user."""
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)


@dataclass(frozen=True)
class NodeFinding:
    """What was wrong with a node, once. Times in seconds since 1970."""

    node: str
    kind: str
    """died, hung, what the vetting calls it, `named` by a person, or `forgiven`."""
    evidence: str
    at: float
    until: float = 0.0
    """How long a person wants it to count; 0: by the rule."""
    run: str = ""
    owner: str = ""
    """Who found it."""


@dataclass(frozen=True)
class BadNode:
    """A node that is stayed away from."""

    node: str
    until: float
    findings: tuple[NodeFinding, ...]
    """Those that count, newest first."""


@dataclass(frozen=True)
class NodeReport:
    """All that is known of a cluster's nodes."""

    nodes: tuple[BadNode, ...] = ()
    """The newest first."""
    refused: tuple[str, ...] = ()
    """What is not read, and why, in words."""

    def avoided(self, most: int) -> tuple[str, ...]:
        """The names of as many as may be left out: with too many, a job would wait for ever."""
        return tuple(entry.node for entry in self.nodes[: max(0, most)])


@dataclass(frozen=True)
class Place:
    """Where the findings about one cluster lie."""

    prefix: str
    """The path of a user's folder without the number of the user."""
    accepted: trust.Accepted = trust.NOBODY_ELSE
    is_shared: bool = False
    """Whether the project reads them."""

    @classmethod
    def of_job(cls, environ: Mapping[str, str] = os.environ) -> Place | None:
        """As job.sh says; None where the scheduler cannot keep a job away from nodes."""
        prefix = environ.get(PLACE, "")
        owners = environ.get(OWNERS)
        accepted = trust.Accepted(tuple((owners or "").split()))
        return cls(prefix, accepted, owners is not None) if prefix.startswith("/") else None

    @property
    def own_folder(self) -> Path:
        """This user's folder."""
        return Path(f"{self.prefix}{os.geteuid()}")

    def report(self, now: float) -> NodeReport:
        """What counts now."""
        findings: list[NodeFinding] = []
        refused: list[str] = []
        for folder in self._user_folders():
            of_user, faults = _read(folder, self.accepted, now)
            findings += of_user
            refused += faults
        return NodeReport(tuple(_judged(findings, now)), tuple(refused))

    def add(self, findings: Iterable[NodeFinding]) -> None:
        """Write each into a file of its own; OSError where that is not possible or not safe."""
        folder = self.own_folder
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if fault := trust.folder(str(folder), self.accepted):
            raise PermissionError(f"{fault.path} {fault.reason}")
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(f"{folder} is not yours")
        if self.is_shared:
            folder.chmod(0o755)
        for finding in findings:
            _write(folder, finding, 0o644 if self.is_shared else 0o600)
        _forget(folder)

    def forgive(self, nodes: Iterable[str], why: str, now: float) -> None:
        """What this user found goes, and what others found counts no longer for those who read it."""
        for node in nodes:
            for path in self.own_folder.glob(f"{node}~*.json"):
                path.unlink(missing_ok=True)
            self.add([NodeFinding(node, FORGIVEN, why, now)])

    def _user_folders(self) -> list[str]:
        parent, _, begin = self.prefix.rpartition("/")
        try:
            names = sorted(os.listdir(parent))  # noqa: PTH208
        except OSError:
            return []
        return [f"{parent}/{name}" for name in names if re.fullmatch(re.escape(begin) + r"\d+", name)]


def is_node(name: str) -> bool:
    """Whether a scheduler may call a node so; nothing else is ever passed on."""
    return _NODE.match(name) is not None


def remember(step: Path, job: str, reasons: Mapping[str, tuple[str, str]]) -> None:
    """Write down what a job found: node -> kind and evidence. A job never ends for want of it."""
    place = Place.of_job()
    if place is None or not reasons:
        return
    run = "/".join(step.absolute().parts[-4:-2])
    now = time.time()
    findings = [
        NodeFinding(node, kind, f"{evidence}, job {job}", now, run=run)
        for node, (kind, evidence) in reasons.items()
        if is_node(node)
    ]
    try:
        place.add(findings)
    except OSError as error:
        print(f"hpctrain: nodes that failed are not remembered: {error}", file=sys.stderr)


def known_to_job() -> tuple[str, ...]:
    """Every node that a job may better do without, the newest first."""
    place = Place.of_job()
    return tuple(entry.node for entry in place.report(time.time()).nodes) if place else ()


def _read(folder: str, accepted: trust.Accepted, now: float) -> tuple[list[NodeFinding], list[str]]:
    """The findings in one user's folder, and what of it is not read."""
    if fault := trust.folder(folder, accepted):
        return [], [f"{fault.path} {fault.reason}"]
    findings, refused = [], []
    owner = os.stat(folder).st_uid  # noqa: PTH116
    if not folder.endswith(f"-{owner}"):
        return [], [f"{folder} belongs to {trust.owner_name(owner)}"]
    for name in sorted(os.listdir(folder))[-MOST:]:  # noqa: PTH208
        path = f"{folder}/{name}"
        if not name.endswith(".json") or name.startswith("."):
            continue
        try:
            finding = _finding(_text(path, owner), trust.owner_name(owner), now)
        except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
            refused.append(f"{path} is not read: {error}")
            continue
        findings.append(finding)
    return findings, refused


def _text(path: str, owner: int) -> bytes:
    """What its owner wrote; a link, a pipe and another user's file are refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_mode & 0o022:
            raise ValueError("it is no file that its owner alone writes")
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError("it is too large")
    return text


def _finding(text: bytes, owner: str, now: float) -> NodeFinding:
    document: Any = documents.parse(text)
    at, until = float(document["at"]), float(document.get("until", 0))
    node = str(document["node"])
    if not (math.isfinite(at) and math.isfinite(until)):
        raise ValueError("no moment")
    if not is_node(node):
        raise ValueError("no name of a node")
    at = min(at, now)  # clocks differ; a finding from the future would last
    return NodeFinding(
        node=node,
        kind=_plain(document["kind"], 40),
        evidence=_plain(document.get("evidence", ""), 300),
        at=at,
        until=min(until, at + LONGEST),
        run=_plain(document.get("run", ""), 120),
        owner=owner,
    )


def _plain(value: Any, most: int) -> str:
    """Words that a terminal may show."""
    if not isinstance(value, str):
        raise ValueError("it holds no words")  # noqa: TRY004  (as any other fault of the file)
    return "".join(letter if letter.isprintable() else " " for letter in value)[:most]


def _judged(findings: Iterable[NodeFinding], now: float) -> Iterator[BadNode]:
    """The nodes that are stayed away from, those with the newest finding first."""
    by_node: dict[str, list[NodeFinding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.at):
        if finding.kind == FORGIVEN:
            by_node.pop(finding.node, None)
        else:
            by_node.setdefault(finding.node, []).insert(0, finding)
    entries = [BadNode(node, _until(listed), tuple(listed)) for node, listed in by_node.items()]
    counting = [entry for entry in entries if entry.until > now]
    return iter(sorted(counting, key=lambda entry: entry.findings[0].at, reverse=True))


def _until(findings: Sequence[NodeFinding]) -> float:
    """How long they count together."""
    newest = findings[0].at
    by_rule = [finding.at for finding in findings if not finding.until and finding.at > newest - WEEK]
    days = {int(at // DAY) for at in by_rule}
    ends = [finding.until for finding in findings if finding.until]
    ends += [by_rule[0] + (WEEK if len(days) > 1 else DAY)] if by_rule else []
    return max(ends)


def _write(folder: Path, finding: NodeFinding, mode: int) -> None:
    document = {"v": 1, "node": finding.node, "kind": finding.kind, "evidence": finding.evidence[:1000]}
    document |= {"at": round(finding.at, 1), "until": round(finding.until, 1), "run": finding.run}
    name = f"{finding.node}~{uuid.uuid4().hex}.json"
    fresh = folder / f".{name}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(json.dumps(document).encode() + b"\n")
        file.flush()
        os.fsync(descriptor)
    fresh.rename(folder / name)


def _forget(folder: Path) -> None:
    """Remove what can count no longer, and what a killed writer left."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < time.time() - LONGEST - DAY:
                path.unlink()


def main(argv: Sequence[str] | None = None) -> int:
    """Remember which nodes failed under a job that nobody goes on with."""
    import argparse

    from hpctrain_job.hangs import verdicts

    parser = argparse.ArgumentParser(
        prog="hpctrain_job.bad_nodes", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--step", type=Path, required=True, help="the step's folder")
    parser.add_argument("--job", required=True)
    parser.add_argument("--lost", default="", help="the nodes that the scheduler holds for lost")
    options = parser.parse_args(argv)
    reasons = dict.fromkeys(options.lost.split(), ("died", "the scheduler lost it"))
    verdict = verdicts.newest(options.step, options.job)
    if verdict is not None and verdict.ends:
        reasons |= dict.fromkeys(verdict.nodes, ("hung", verdict.words))
    remember(options.step, options.job, reasons)
    return 0


if __name__ == "__main__":
    sys.exit(main())
