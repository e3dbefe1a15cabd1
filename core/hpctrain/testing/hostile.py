"""What a user writes stays data: names are refused, values reach the program as they were written."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, fatal
from hpctrain.run.system.tools import Tools
from hpctrain.testing.base import Base, none
from hpctrain.testing.scripts import header_is_inert, written
from hpctrain.testing.subject import Subject, binding_of, rendered

VALUES = (
    "$(touch PWNED)",
    "`touch PWNED`",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "x & touch PWNED #",
    "$HOME ${PATH} $'\\n' \\",
    "* ? ~ !! [a] {b,c} %s",
    "--out=$(touch PWNED)",
    " two  spaces ",
    "Ærlig 日本 \u00a0",
    "",
)
"""Every legal character that a shell would act on; control characters are refused with the file."""

NAMES = ("$(touch PWNED)", "a;touch PWNED", "a b", "../up", "-rf", "a\\nb", "a/b", "`x`", "'", "")
FIELDS = {
    "the run": "name = {}",
    "an asset": "[assets]\n{} = {{ hub = 'a/b' }}",
    "a variable": "[env]\n{} = 'x'",
    "a secret": "secrets = [{}]",
    "an account": "[resources]\naccount = {}",
    "a queue": "[resources]\nqueue = {}",
}
RESOURCES = "[resources]\nnodes = 2\n"
"""Two nodes: a cluster's hooks may say more then."""

STAND_IN = """\
import json, os, sys
json.dump({"argv": sys.argv[1:], "env": dict(os.environ)}, open("seen.json", "w"))
"""


class HostileChecks(Base):
    """Strings that would be commands, if anybody forgot to quote them."""

    @pytest.mark.parametrize("field", FIELDS)
    def test_a_name_that_is_none_is_refused(self, subject: Subject, tmp_path: Path, field: str) -> None:
        if field == "a queue" and not subject.facts.queue:
            pytest.skip("this cluster has no queues")
        # An empty account or queue is one that is not given.
        bad = [name for name in NAMES if name or field not in ("an account", "a queue")]
        taken = [name for name in bad if not _refused(subject, tmp_path / "run.toml", field, name)]
        none(map(repr, taken), f"{field} may be called what becomes part of paths and scripts:")

    def test_values_reach_the_program_as_they_are(self, subject: Subject, tmp_path: Path) -> None:
        run = tmp_path / "run $(touch PWNED) 'dir'"
        program = _stand_in(tmp_path / "an env $(touch PWNED)'\"")
        files = _rendered(subject, tmp_path / "run.toml", str(program.parents[1]))
        written({k: v for k, v in files.items() if k.endswith(".sh")}, run)
        Tools({}).run(("bash", "steps/train/task.sh"), cwd=run, env=_job(run))
        received = json.loads((run / "seen.json").read_text(encoding="utf-8"))
        assert tuple(received["argv"][2:]) == VALUES, "the program's arguments are not as the run file says"
        env = tuple(received["env"].get(f"HOSTILE_{n}") for n in range(len(VALUES)))
        assert env == VALUES, "the program's variables are not as the run file says"
        planted = [str(path) for path in tmp_path.rglob("PWNED")]
        none(planted, "a value was run as a command:")

    def test_words_for_the_scheduler_cannot_leave_their_line(self, subject: Subject, tmp_path: Path) -> None:
        words = [f"--comment={value}" for value in VALUES]
        extra = f"{RESOURCES}ask = {{ {subject.facts.scheduler} = {json.dumps(words)} }}\n"
        file = tmp_path / "run.toml"
        file.write_text(_run_file(subject, "/opt/env", VALUES, extra), encoding="utf-8")
        try:
            session = subject.session(file)
            files = rendered(session, binding_of(session))
        except ConfigError:
            return  # refusing such words is as good
        header_is_inert({k: v for k, v in files.items() if isinstance(v, str) and k.endswith(".sh")})


def _rendered(subject: Subject, file: Path, prefix: str) -> dict[str, str]:
    file.write_text(_run_file(subject, prefix, VALUES), encoding="utf-8")
    session = subject.session(file)
    none((p.message for p in fatal(session.plan().problems)), "a run with odd values does not plan:")
    return {k: v for k, v in rendered(session, binding_of(session)).items() if isinstance(v, str)}


def _run_file(subject: Subject, prefix: str, values: Sequence[str], extra: str = RESOURCES) -> str:
    argv = ["python", "-", "{run}", *values]
    env = "\n".join(f"HOSTILE_{n} = {_toml(value)}" for n, value in enumerate(values))
    return "\n".join(
        [
            f"name = 'hostile'\ncluster = {_toml(subject.name)}\n{extra}time = '10m'",
            f"[environment]\nuse = 'ready'\n[environment.ready]\nprefix = {_toml(prefix)}",
            f"[env]\n{env}\n[train]\nuse = 'command'\n[train.command]\nargv = {_toml(argv)}",
        ]
    )


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _stand_in(prefix: Path) -> Path:
    """A `python` of an environment whose own path is hostile; it writes down what it was given."""
    program = prefix / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\n{STAND_IN}", encoding="utf-8")
    program.chmod(0o755)
    (program.parent / "python3").symlink_to(program.name)
    return program


def _job(run: Path) -> dict[str, str]:
    """What job.sh and rank.sh would have set."""
    names = (
        "JOB",
        "STEP",
        "NODES",
        "HEAD",
        "GPUS",
        "ATTEMPT",
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "WORLD",
        "PORT",
    )
    job = {f"HPC_{name}": "1" for name in names}
    paths = {"HPC_RUN": str(run), "HPC_CHECKPOINTS": f"{run}/checkpoints", "HPC_PYTHON": sys.executable}
    return {"PATH": "/usr/bin:/bin", "HOME": str(run), "USER": "somebody", **job, **paths}


def _refused(subject: Subject, file: Path, field: str, name: str) -> bool:
    line = FIELDS[field].format(_toml(name))
    lines = [f"cluster = {_toml(subject.name)}"]
    lines += [] if field == "the run" else ["name = 'r'"]
    file.write_text("\n".join([*lines, line, "[train]\nuse = 'command'", "[train.command]\nargv = ['true']"]))
    try:
        session = subject.session(file) if field != "an account" else subject.unpaid_session(file)
        if fatal(session.plan().problems):
            return True
        binding_of(session)
    except ConfigError:
        return True
    return False
