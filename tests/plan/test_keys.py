"""Every key of a run has a value, and it is known whether somebody said it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hpctrain.cli.show.explain import explain_lines
from hpctrain.errors import ConfigError
from hpctrain.plan.explain import explain
from hpctrain.session import Session
from hpctrain.ui.term import Term

RUN = """
name = "x"
cluster = "local"
[resources]
nodes = 1
time = "90m"
[environment]
packages = ["trl==0.23.1", { git = "https://x.org/y", name = "y" }]
[environment.conda]
first = ["torch==2.9.0"]
[environment.venv]
first = ["numpy"]
[assets]
model = { hub = "org/x" }
data = { path = "run.toml" }
[train.command]
argv = ["true"]
[env]
A = "b c"
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    file: Path = tmp_path_factory.mktemp("run") / "run.toml"
    file.write_text(RUN)
    sets = ('environment.use="conda"',)
    return Session(file, sets=sets, environ={"HOME": str(file.parent), "HPCTRAIN_SITE": "/dev"})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("resources.time", '= "1h30m"  from run file, run.toml:6'),
        ("resources.gpus", "= -  the default, not changed by any layer"),
        ("checkpoint.keep", "= -  the default, not changed by any layer"),
        ("environment.use", '= "conda"  from --set environment.use="conda"'),
        ("environment.conda.first", '= ["torch==2.9.0"]  from run file, run.toml:10'),
        ("environment.conda.glibc", '= "2.28"  the default, not changed by any layer'),
        ("environment.conda.expect.cuda", '= ""  the default, not changed by any layer'),
        ("environment.venv.first", " from run file, run.toml:12; not used in this run"),
        ("assets.model.hub", '= "org/x"  from run file, run.toml:14'),
        ("assets.model.revision", '= ""  the default, not changed by any layer'),
        (
            "environment.packages",
            '= ["trl==0.23.1", { name = "y", git = "https://x.org/y" }]  from run file, run.toml:8',
        ),
        ("env.A", '= "b c"  from run file, run.toml:19'),
        ("secrets", "= []  the default, not changed by any layer"),
    ],
)
def test_a_key_is_explained_with_its_value(session: Session, key: str, said: str) -> None:
    (entry,) = explain(session.plan(), key)
    assert explain_lines([entry], Term(io.StringIO())) == [f"{key} {said}"]


def test_what_core_filled_in_is_said(session: Session) -> None:
    (entry,) = explain(session.plan(), "assets.data.sha256")
    assert explain_lines([entry], Term(io.StringIO()))[0].endswith("  follows from other keys")


def test_the_end_of_a_key_is_enough(session: Session) -> None:
    assert [entry["name"] for entry in explain(session.plan(), "revision")] == [
        "assets.data.revision", "assets.model.revision",
    ]  # fmt: skip
    names = [entry["name"] for entry in explain(session.plan(), "use")]
    assert names == sorted(names)
    assert {"environment.use", "train.use"} <= set(names)


@pytest.mark.parametrize(
    ("name", "message", "notes"),
    [
        (
            "resources.tiem",
            '[resources] has no key "tiem"',
            ("similar names: resources.time",),
        ),
        ("torch", 'nothing in this plan is called "torch"', ()),
        ("NO_SUCH_NAME", "no step of this plan has a variable NO_SUCH_NAME, and no fact of", ()),
    ],
)
def test_what_is_not_there_is_said_and_nothing_else_is_proposed(
    session: Session, name: str, message: str, notes: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        explain(session.plan(), name)
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)
    assert (problem.notes, problem.hint) == (notes, "hpctrain plan --json lists every name")
