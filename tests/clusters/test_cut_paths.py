"""Names that a container's engine or PATH would take apart are refused, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain.session import Session
from tests.clusters import EXAMPLES, HOMES

pytestmark = pytest.mark.usefixtures("workspace")

RUN = """
name = "r"
cluster = "local"
[resources]
time = "5m"
[environment]
use = "{use}"
[environment.ready]
{ready}
{folder}
[train]
use = "command"
[train.command]
argv = ["ls", "{word}"]
"""
IMAGE = 'image = "/i.sif"'


def refusals(path: Path, home: Path, *sets: str) -> list[tuple[str, str, str]]:
    """Key, message and cure of each path that is cut."""
    found = Session(path, sets=sets, environ={"USER": "ada", "HOME": str(home)}).plan().problems
    return [(p.where, p.message, p.hint) for p in found if p.code == "path-cut" and p.fatal]


@pytest.mark.parametrize("sign", [":", ","])
@pytest.mark.parametrize(
    ("folder", "key", "word"),
    [
        ('[code]\npath = "PATH"', "code.path", "x"),
        ('[assets.d]\npath = "PATH"', "assets.d.path", "{assets.d}"),
    ],
)
def test_apptainer_cuts_at_both(folder: str, key: str, word: str, sign: str, tmp_path: Path) -> None:
    place = tmp_path / f"a{sign}b"
    place.mkdir()
    folder = folder.replace("PATH", str(place))
    run = tmp_path / "run.toml"
    run.write_text(RUN.format(use="ready", ready=IMAGE, folder=folder, word=word))
    ((where, message, hint),) = refusals(run, tmp_path)
    assert (where, f'at "{sign}"' in message) == (key, True)
    assert f"{tmp_path}/a_b" in hint
    run.write_text(RUN.format(use="", ready="", folder=folder, word=word))
    assert refusals(run, tmp_path) == []  # without a container it is a folder like others


@pytest.mark.parametrize(("sign", "cut"), [(":", True), (",", False)])
def test_the_container_engine_cuts_at_a_colon(sign: str, cut: bool, tmp_path: Path) -> None:
    (path,) = [p for p in EXAMPLES if p.parent == HOMES["alps"] / "examples" and p.name == "two-nodes.toml"]
    sets = ('resources.account="p"', f"assets.d.path={json.dumps(f'/data/a{sign}b')}")
    assert [row[0] for row in refusals(path, tmp_path, *sets)] == (["assets.d.path"] if cut else [])


def test_a_prefix_with_a_colon_is_on_no_path(tmp_path: Path) -> None:
    run = tmp_path / "run.toml"
    run.write_text(RUN.format(use="ready", ready='prefix = "/a:b"', folder="", word="x"))
    problems = Session(run, environ={"USER": "ada", "HOME": str(tmp_path)}).plan().problems
    assert [(p.where, p.fatal) for p in problems if "cut at a colon" in p.message] == [
        ("environment.ready.prefix", True)
    ]
