"""A session is read once and never changes; what changes something returns another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import ConfigError, NotReachable
from hpctrain.lock import path_of
from hpctrain.model.step import Pin
from hpctrain.plan.goal import BUILD, STAGE
from hpctrain.testing import watched
from hpctrain.testing.purity import package_folders

RUN = """\
name = "hello"
cluster = "local"
[environment]
use = "venv"
packages = ["six"]
[train]
use = "command"
[train.command]
argv = ["python", "train.py"]
"""
PINS = (Pin("six", "pypi", "1.17.0"), Pin("native", "platform", "x86_64"))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    file = tmp_path / "run.toml"
    file.write_text(RUN)
    return Session(file, environ={"HOME": str(tmp_path), "USER": "ada"})


def test_what_is_written_later_changes_no_session(session: Session) -> None:
    digest = session.plan().digest
    session.with_pins(PINS)
    session.source.path.write_text("name = 1\n")
    assert (session.locked, session.pins, session.plan().digest) == (False, (), digest)


def test_pins_make_another_session_that_plans_with_them(session: Session) -> None:
    pinned = session.with_pins(PINS)
    assert (pinned.locked, set(pinned.pins)) == (True, set(PINS))
    assert pinned.plan().pins == pinned.pins
    assert pinned.plan().digest != session.plan().digest
    again = Session(session.source.path, environ=session.environ)
    assert again.plan().digest == pinned.plan().digest


def test_pins_that_answer_another_run_are_not_used(session: Session) -> None:
    session.with_pins(PINS)
    file = session.source.path
    file.write_text(RUN.replace("six", "attrs"))
    other = Session(file, environ=session.environ)
    assert (other.lock.exists, other.lock.stale, other.locked, other.pins) == (True, True, False, ())


def test_a_goal_is_a_session_of_its_own_and_asks_no_trainer(session: Session) -> None:
    build = session.with_goal(BUILD)
    assert [plan.run.name for plan in (session.plan(), build.plan())] == ["hello", "hello-build"]
    assert "train" not in {step.name for step in build.plan().steps}
    assert [name for name in session.plan().plugins if name.startswith("trainers:")]
    assert not [name for name in build.plan().plugins if name.startswith("trainers:")]
    direct = Session(session.source.path, environ=session.environ, goal=BUILD)
    assert direct.plan().digest == build.plan().digest
    assert build.with_goal(STAGE).plan().run.name == "hello-stage"


def test_a_plan_reads_nothing_that_was_not_read_before(session: Session) -> None:
    with watched(package_folders()) as seen:
        plan = session.plan()
    assert not seen.acts, seen.acts
    assert plan is session.plan()


def test_all_that_is_wrong_is_raised_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(RUN.replace("packages", "pakcages") + "[resources]\nnodse = 2\n")
    with pytest.raises(ConfigError) as caught:
        Session(file, environ={"HOME": str(tmp_path)})
    assert {problem.where for problem in caught.value.problems} == {"environment.pakcages", "resources.nodse"}


def test_a_lock_that_is_broken_is_named(session: Session) -> None:
    session.with_pins(PINS)
    lock = path_of(session.source.path)
    lock.write_text(lock.read_text().replace("pypi:six", "six"))
    with pytest.raises(ConfigError, match=r"run.lock.toml: a pin is"):
        Session(session.source.path, environ=session.environ)


def test_prepared_refuses_another_computer(session: Session) -> None:
    file, sets = session.source.path, ["resources.time='30m'"]
    far = Session(file, on="frontier", account="abc123", sets=sets, environ=session.environ).prepared()
    with pytest.raises(NotReachable) as caught:
        far.judge()
    assert "hpctrain eject" in caught.value.problems[0].hint
    assert far.plan.cluster.name == "frontier"


def test_a_lock_is_a_lock_under_any_name(session: Session) -> None:
    """A copy without its suffix was planned without its pins, in silence."""
    pinned = session.with_pins(PINS)
    copy = session.source.path.with_name("paper.toml")
    copy.write_bytes(path_of(session.source.path).read_bytes())
    again = Session(copy, environ=session.environ)
    assert (again.locked, set(again.pins)) == (True, set(PINS))
    assert again.plan().digest == pinned.plan().digest
    again.with_pins(PINS[:1])
    assert {path.name for path in copy.parent.iterdir()} == {"run.toml", "run.lock.toml", "paper.toml"}
    assert set(Session(copy, environ=session.environ).pins) == set(PINS[:1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('cluster = "local"', 'cluster = "olivai"'),
        ('use = "command"', 'use = "comand"'),
        ('use = "venv"', 'use = "vanv"'),
    ],
)
def test_a_name_that_nobody_has_hides_no_other_mistake(session: Session, old: str, new: str) -> None:
    text = RUN.replace(old, new).replace('"hello"', '"hello"\ncolour = "red"')
    session.source.path.write_text(text + '[resources]\ntime = 5\ngpus = "two"\n')
    with pytest.raises(ConfigError) as caught:
        Session(session.source.path, environ=session.environ)
    codes = sorted(problem.code for problem in caught.value.problems)
    assert [code for code in codes if code != "no-plugin"] == ["unknown-key", "wrong-type", "wrong-type"]
    assert "no-plugin" in codes
    assert all(problem.span is not None for problem in caught.value.problems)


def test_two_names_that_nobody_has_are_both_told(session: Session) -> None:
    session.source.path.write_text(RUN.replace('"local"', '"olivai"').replace('"command"', '"comand"'))
    with pytest.raises(ConfigError) as caught:
        Session(session.source.path, environ=session.environ)
    assert [problem.where for problem in caught.value.problems] == ["cluster", "train.use"]
