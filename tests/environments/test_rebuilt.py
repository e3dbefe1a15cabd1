"""What `build --rebuild` and the time of a build mean, the same for every technology that builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpctrain.lock import rebuilt
from hpctrain.session import Session

RUN = """
name = "mine"
cluster = "{cluster}"
[resources]
gpus = 1
time = "15m"
account = "g1"
[environment]
use = "{use}"
python = "3.12"
packages = ["trl==0.23.1", "numpy==2.1.0"]
compile = ["flash-attn==2.5.8"]
[environment.{use}]
{options}
[environment.{use}.builds.flash-attn]
minutes = {minutes}
[train]
use = "command"
[train.command]
argv = ["python", "-V"]
"""
BASE = 'base = "nvcr.io/nvidia/pytorch:24.04-py3"'
TECHNOLOGIES = [
    ("olivia", "apptainer", ""),
    ("olivia", "apptainer", 'overlay = "ext3"'),
    ("alps", "edf", BASE),
    ("alps", "edf", f'{BASE}\nkind = "venv"'),
    ("isambard", "uv", ""),
    ("leonardo", "venv", ""),
    ("frontier", "conda", ""),
]
each_technology = pytest.mark.parametrize(("cluster", "use", "options"), TECHNOLOGIES)


def session(folder: Path, cluster: str, use: str, options: str, minutes: int = 120) -> Session:
    run = folder / "run.toml"
    run.write_text(RUN.format(cluster=cluster, use=use, options=options, minutes=minutes))
    return Session(run, environ={"USER": "ada", "HOME": str(folder)})


def environment_key(one: Session) -> str:
    """The key of what training enters."""
    made = {p.name: p.step.makes for p in one.plan().steps}
    artifact = made.get("env") or made["image"]
    assert artifact is not None
    return artifact.key


@each_technology
@pytest.mark.parametrize("package", ["trl", "flash-attn"])
def test_a_rebuild_is_a_new_key_each_time(
    tmp_path: Path, cluster: str, use: str, options: str, package: str
) -> None:
    one = session(tmp_path, cluster, use, options)
    keys = [environment_key(one)]
    for _ in range(2):
        one = one.with_pins(rebuilt(one.pins, [package]))
        keys.append(environment_key(one))
    assert len({*keys}) == 3


@each_technology
def test_a_rebuild_alone_pins_no_versions(tmp_path: Path, cluster: str, use: str, options: str) -> None:
    """What is installed is what was: only its place has another name."""
    before = session(tmp_path, cluster, use, options)
    after = before.with_pins(rebuilt((), ["trl"]))

    def words(one: Session) -> list[str]:
        steps = [p.step for p in one.plan().steps if p.name in ("env", "image")]
        return [re.sub("[0-9a-f]{12}", "KEY", str(step.commands)) for step in steps]

    assert words(after) == words(before)


@each_technology
def test_a_build_has_the_time_that_the_run_file_gives_it(
    tmp_path: Path, cluster: str, use: str, options: str
) -> None:
    """One job that builds all has time for the rest too; a longer time is no other environment."""
    short, long = (session(tmp_path, cluster, use, options, minutes) for minutes in (100, 200))

    def minutes(one: Session) -> int:
        return sum(planned.step.minutes for planned in one.plan().steps if planned.name != "train")

    assert minutes(long) == minutes(short) + 100
    assert environment_key(long) == environment_key(short)
