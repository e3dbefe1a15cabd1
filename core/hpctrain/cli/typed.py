"""The options that opened a run, put into every command that a hint or `next:` proposes for it."""

from __future__ import annotations

import re
import shlex

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.runfile.layers.sets import read_value

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
        """The problem with a completed hint: what stands on the command line is corrected there."""
        if not problem.hint:
            return problem
        return attrs.evolve(problem, hint=_as_option(problem) or self.completed(problem.hint))

    def _command(self, match: re.Match[str]) -> str:
        verb, file, tail = match["verb"], match["file"] or "", match["tail"]
        if "--trainer" in tail:  # the trainer's files, without a run
            return match.group()
        file = shlex.quote(self.file) if self.file else file.replace("RUN_FILE", "")
        words = ["hpctrain", verb, *([file] if file else []), *self._options(verb, tail)]
        return " ".join(words) + tail

    def _options(self, verb: str, tail: str) -> list[str]:
        """What was typed, except what the proposed command sets itself."""
        pairs = [("--set", value) for value in self.sets]
        if "--on " not in tail and ((len(self.on) < 2 and "all" not in self.on) or verb in COMPARING):
            pairs = [("--on", name) for name in self.on] + pairs
        if self.account and "--account " not in tail:
            pairs.append(("--account", self.account))
        return [word for option, value in pairs for word in (option, shlex.quote(value))]


def _as_option(problem: Problem) -> str:
    """A hint for a key of the run file as the option that said it: `--set resources.time=1h`."""
    option, _, words = (problem.span.file if problem.span else "").partition(" ")
    match = re.match(r"(?P<key>[\w.-]+)(?: = (?P<value>\S+)|, .*)?(?P<more> {3}.*|\Z)", problem.hint)
    if match is None:
        return ""
    value = match["value"] or ""
    if isinstance(read_value(value.strip('"')), str):  # without quotes a "0" would be a number
        value = value.strip('"')
    if option == "--on":
        return f"--on {value}" if match["key"] == "cluster" and value else ""
    if option != "--set":
        return ""
    above = problem.where.rpartition(".")[0]
    key = match["key"] if match["key"].startswith(f"{above}.") or not above else f"{above}.{match['key']}"
    return f"--set {key}={shlex.quote(value or words.partition('=')[2])}{match['more']}"
