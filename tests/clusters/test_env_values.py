"""What stands in `[env]` is what the task gets, letter by letter, on every cluster."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import attrs
import pytest

from hpctrain.model.step import Step
from hpctrain.model.words import Cmd
from hpctrain.render import scripts
from hpctrain.session import Session
from tests.clusters import EXAMPLES, HOMES

pytestmark = pytest.mark.usefixtures("workspace")

VALUES = {
    "TWO_LINES": "a\nb\n\n c",
    "ENDS_IN_A_LINE": "a\n",
    "TAB": "a\tb",
    "SPACES": "  a  b  ",
    "QUOTES": "a'b\"c`d`e\\",
    "DOLLAR": "$HOME/x $(id) ${PATH}",
    "PLACEHOLDER": "<your-key>",
    "SEARCH_PATH": "/a:/b:~/c",
    "COMMAS": "a=b,c=d;e",
    "COMMENT": "a # b",
    "STAR": "* ? [a] {b,c}",
    "BANG": "!! ^a",
    "UNICODE": "é 漢 🙂",
    "OPTION": "--export=ALL",
    "EMPTY": "",
    "LONG": "x" * 20_000,
}
HOME_OF = {path: path.parent.parent.name.removeprefix("hpc_") for path in EXAMPLES}
WALKS = [(path, cluster) for path in EXAMPLES for cluster in dict.fromkeys((HOME_OF[path], "local"))]
SETS = [f"env.{name}={json.dumps(value, ensure_ascii=False)}" for name, value in VALUES.items()]


def delivered(step: Step, session: Session, tmp_path: Path) -> dict[str, str]:
    """The variables of a task whose only command writes them down."""
    planned = session.plan().step_named("train")
    assert planned is not None
    listing = attrs.evolve(step, commands=(Cmd.of("env", "-0"),))
    alone = attrs.evolve(planned, step=listing, around=attrs.evolve(planned.around, task=()))
    script = tmp_path / "task.sh"
    script.write_text(scripts.task(alone, session.binding))
    for secret in session.run.secrets:
        (tmp_path / secret).write_text("t0ken")
    folders = dict.fromkeys(("HOME", "HPC_RUN", "HPC_SECRETS"), str(tmp_path))
    env = dict.fromkeys(re.findall(r"HPC_\w+", script.read_text()), "0") | folders
    env |= {"PATH": "/usr/bin:/bin", "USER": "ada", "PROJECTDIR": "/project"}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(row.split("=", 1) for row in done.stdout.decode().split("\0") if row)


@pytest.mark.parametrize(
    ("path", "cluster"), WALKS, ids=[f"{HOME_OF[path]}/{path.name}-on-{name}" for path, name in WALKS]
)
def test_a_value_arrives_as_it_stands(path: Path, cluster: str, tmp_path: Path) -> None:
    environ = {"USER": "ada", "HOME": str(tmp_path)}
    account = 'resources.account="project"'
    session = Session(path, on=cluster, sets=[account, *SETS], environ=environ)
    planned = session.plan().step_named("train")
    assert planned is not None
    got = delivered(planned.step, session, tmp_path)
    assert {name: got.get(name) for name in VALUES} == VALUES
    literal = {p.where for p in session.loaded.problems if p.code == "env-literal"}
    assert {where.rpartition(".")[2] for where in literal} == {"DOLLAR", "PLACEHOLDER", "SEARCH_PATH"}


def test_every_technology_is_tried(tmp_path: Path) -> None:
    """What clusters build with by themselves, and every starter of ranks that they have."""
    environ = {"USER": "ada", "HOME": str(tmp_path)}
    uses = {Session(path, on=HOME_OF[path], environ=environ).run.environment.use for path in EXAMPLES}
    assert {"apptainer", "edf", "venv"} <= uses
    assert set(HOME_OF.values()) == set(HOMES)
