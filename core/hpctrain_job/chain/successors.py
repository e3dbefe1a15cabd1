"""More jobs of a chain, handed over by one of its own: each exactly once, whatever is killed in between.

The protocol is that of `hpctrain submit`, in the same record: a tag that exists nowhere else is on the disk
before the scheduler is called, and the scheduler keeps it in the job's name. Whoever comes next, another job
or `hpctrain continue`, looks for a tag without an answer before anything else is submitted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hpctrain_job.files import shared
from hpctrain_job.files.shared import one_at_a_time

SCRIPT, RECORD, LOCK, WITNESS = "next.sh", "record.jsonl", ".links.lock", ".tag."
"""In the step's folder: what submits and finds a job; whose turn it is; a second trace of each tag."""
PASSED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR")
"""Variables of a job that what it submits may see: options of its own scheduler would be the next job's."""
TURN_SECONDS = 65.0
CALL_SECONDS = 60.0


@dataclass(frozen=True)
class Submission:
    """One job that was asked for; `job` is empty while nobody knows what became of it."""

    tag: str
    job: str = ""
    refused: bool = False


def submissions(entries: Iterable[Mapping[str, Any]], step: str) -> list[Submission]:
    """Every job that was asked for, from the lines of the record, the last one at the end."""
    by_tag: dict[str, Submission] = {}
    for entry in entries:
        event, tag = entry.get("event"), str(entry.get("tag", ""))
        if entry.get("step") != step or not tag:
            continue
        if event == "intent":
            by_tag[tag] = Submission(tag)
        elif event == "submitted":
            by_tag[tag] = Submission(tag, str(entry.get("job", "")))
        elif event == "refused" and tag in by_tag:
            by_tag[tag] = Submission(tag, refused=True)
    return list(by_tag.values())


@dataclass(frozen=True)
class Handover:
    """How the jobs of a step hand over another one."""

    run: Path
    step: str
    version: int
    """Of the record's lines."""
    environ: tuple[str, ...]
    """Variables that the scheduler's programs need besides PASSED."""
    id: str
    """Matches a line that is a job's id, its group 1."""
    refused: str
    """Matches an answer that proves that there is no job."""
    unclear: str
    """Matches an answer that proves nothing, whatever else it says."""

    @classmethod
    def read(cls, run: Path, step: str, terms: Mapping[str, Any]) -> Handover | None:
        """As it was rendered; None where jobs submit no others."""
        words = terms.get("handover")
        if not words:
            return None
        patterns = {key: str(words[key]) for key in ("id", "refused", "unclear")}
        return cls(run, step, int(terms["v"]), tuple(words["environ"]), **patterns)

    @property
    def folder(self) -> Path:
        return self.run / "steps" / self.step

    def submissions(self) -> list[Submission]:
        """Every job that was asked for, the last one at the end."""
        return submissions(shared.objects(self.run / RECORD), self.step)

    def hand_over(self, count: int, after: str, apart: float | None) -> list[str]:
        """Submit `count` jobs, each behind the one before, the first behind `after`; the ids of those that
        the scheduler took. What somebody else hands over while we wait for our turn is left to him.

        A submission that was interrupted is finished first: it is looked for twice, `apart` seconds apart.
        None: there is no time for that, and it is left to the next job or to a person.
        """
        before = self.submissions()
        with one_at_a_time(self.folder / LOCK, TURN_SECONDS):
            recorded = self.submissions()
            if recorded != before:
                return []
            taken: list[str] = []
            last = self._lost(recorded) or (recorded[-1] if recorded else None)
            if last is not None and not (last.job or last.refused):
                job = self._finished(last.tag, after, apart)
                if not job:
                    return []
                taken.append(job)
            while len(taken) < count:
                tag = uuid.uuid4().hex
                self._write("intent", tag)
                (self.folder / f"{WITNESS}{tag}").touch(mode=0o600)
                job = self._submitted(tag, taken[-1] if taken else after)
                if not job:
                    break
                taken.append(job)
            return taken

    def _finished(self, tag: str, after: str, apart: float | None) -> str:
        """The job of a tag whose answer nobody wrote down; empty while it is not known."""
        job = self._id_of(tag)
        if job is None or (not job and apart is None):
            return ""
        if not job and apart is not None:
            time.sleep(apart)
            job = self._id_of(tag)
            if job is None:
                return ""
        if job:
            self._write("submitted", tag, job=job, adopted=True)
            return job
        return self._submitted(tag, after)

    def _submitted(self, tag: str, after: str) -> str:
        """Ask for one job; its id, or empty where there is none or nobody knows."""
        code, answer = self._call("submit", tag, after)
        ids = self._ids(answer) if code == 0 else []
        if ids:
            self._write("submitted", tag, job=ids[-1])
            return ids[-1]
        words = answer.strip().splitlines()
        why = words[-1] if words else "no answer"
        is_refusal = re.search(self.refused, answer, re.IGNORECASE) is not None
        if is_refusal and not re.search(self.unclear, answer, re.IGNORECASE):
            self._write("refused", tag, why=why)
        print(f"hpctrain: no further job was handed over: {why}", file=sys.stderr)
        return ""

    def _id_of(self, tag: str) -> str | None:
        """The id of the job with this tag, empty where there is none; None where the scheduler is silent."""
        code, answer = self._call("find", tag, "")
        if code != 0:
            return None
        return next(iter(self._ids(answer)), "")

    def _ids(self, answer: str) -> list[str]:
        matches = (re.fullmatch(self.id, line.strip()) for line in answer.splitlines())
        return [match[1] for match in matches if match]

    def _call(self, verb: str, tag: str, after: str) -> tuple[int, str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if name in (*PASSED, *self.environ) or name.startswith("LC_")
        }
        environ |= {"HPC_TAG": tag, "HPC_AFTER": f"afterany:{after}", "HPC_RUN": str(self.run)}
        try:
            done = subprocess.run(
                ("bash", f"steps/{self.step}/{SCRIPT}", verb),
                cwd=self.run, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=CALL_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return -1, str(error)
        return done.returncode, done.stdout

    def _lost(self, recorded: list[Submission]) -> Submission | None:
        """The newest tag that the record does not have: a full disk, or a crash, cut it off."""
        witnesses = sorted(self.folder.glob(f"{WITNESS}*"), key=lambda path: path.stat().st_mtime_ns)
        tag = witnesses[-1].name.removeprefix(WITNESS) if witnesses else ""
        if not tag or any(submission.tag == tag for submission in recorded):
            return None
        self._write("intent", tag)
        return Submission(tag)

    def _write(self, event: str, tag: str, **fields: Any) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = {"v": self.version, "time": now, "event": event, "step": self.step, "tag": tag, **fields}
        line = json.dumps({**entry, "by": os.environ.get("HPC_JOB", "")}, ensure_ascii=False)
        shared.append_line(self.run / RECORD, line.encode("utf-8", "replace"))
