"""The options that opened a run, put into every command that a hint or `next:` proposes for it."""

from __future__ import annotations

import re

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.render.shell import quoted

COMMANDS = (
    "build", "check", "diff", "eject", "exec", "lock", "plan", "run", "shell", "stage", "submit", "tunnel",
)  # fmt: skip
"""Every command that opens a run file."""
COMPARING = ("check", "diff", "lock", "plan")
"""Those among them that take several clusters."""


@frozen(kw_only=True)
class Typed:
    """How the run of this command line was opened: a command without these words means another run."""

    file: str = ""
    on: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    account: str = ""

    def completed(self, text: str) -> str:
        """`text` with the file, --on, --set and --account in every command that opens a run file."""
        file = (
            rf"RUN_FILE|{re.escape(self.file)}|[^\s;]+\.toml\b" if self.file else r"RUN_FILE|[^\s;]+\.toml\b"
        )
        command = (
            rf"\bhpctrain (?P<verb>{'|'.join(COMMANDS)})(?= |,|\Z|\n)(?: (?P<file>{file}))?"
            r"(?P<tail>(?: (?! )[^ \n]+)*)"
        )
        return re.sub(command, self._command, text)

    def problem(self, problem: Problem) -> Problem:
        """The problem with a completed hint."""
        return attrs.evolve(problem, hint=self.completed(problem.hint)) if problem.hint else problem

    def _command(self, match: re.Match[str]) -> str:
        verb, file, tail = match["verb"], match["file"] or "", match["tail"]
        if "--trainer" in tail:  # the trainer's files, without a run
            return match.group()
        file = quoted(self.file) if self.file else file.replace("RUN_FILE", "")
        words = ["hpctrain", verb, *([file] if file else []), *self._options(verb, tail)]
        return " ".join(words) + tail

    def _options(self, verb: str, tail: str) -> list[str]:
        """What was typed, except what the proposed command sets itself."""
        pairs = [("--set", value) for value in self.sets]
        if "--on " not in tail and ((len(self.on) < 2 and "all" not in self.on) or verb in COMPARING):
            pairs = [("--on", name) for name in self.on] + pairs
        if self.account and "--account " not in tail:
            pairs.append(("--account", self.account))
        return [word for option, value in pairs for word in (option, quoted(value))]
