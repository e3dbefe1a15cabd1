"""Run directories: whole when seen, numbered once, found by what people say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.run.disk.directory import RunDirectory
from tests.run.conftest import mode, python

DIGEST = "4f1c9a2e" + "0" * 56
CONTENTS: dict[str, str | bytes] = {
    "plan.json": "{}",
    "run.sh": "#!/bin/sh\n",
    "steps/env/job.sh": b"true\n",
    "code/job.zip": b"PK",
}


def make(root: Path, name: str = "demo", digest: str = DIGEST) -> RunDirectory:
    return RunDirectory.create(root, name, digest, CONTENTS)


def test_a_run_is_numbered_private_and_complete(tmp_path: Path, any_umask: None) -> None:
    run = make(tmp_path / "runs")
    assert run.path == tmp_path / "runs" / "demo" / "1-4f1c9a2e"
    assert (run.name, run.number, run.digest8, run.title) == ("demo", 1, "4f1c9a2e", "demo/1")
    everything = [run.path.parent, run.path, *run.path.rglob("*")]
    wanted = [0o700 if p.is_dir() or p.suffix == ".sh" else 0o600 for p in everything]
    assert [mode(p) for p in everything] == wanted
    assert run.step("env").joinpath("job.sh").read_bytes() == b"true\n"
    assert run.logs.is_dir()
    assert make(tmp_path / "runs").number == 2


def test_numbers_go_on_after_gaps_and_crashes(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "demo" / ".claim-2").mkdir()
    (tmp_path / "demo" / "10-0000beef").mkdir()
    (tmp_path / "demo" / "notes").mkdir()
    assert make(tmp_path).number == 11
    assert [run.number for run in RunDirectory.all(tmp_path / "demo")] == [1, 10, 11]


CREATOR = """
import sys
from pathlib import Path
from hpctrain.run.disk.directory import RunDirectory
for n in range(20):
    digest = f"{int(sys.argv[2]) * 1000 + n:08x}"
    print(RunDirectory.create(Path(sys.argv[1]), "x", digest, {"plan.json": "{}", "a/b.sh": "c"}).number)
"""


def test_concurrent_creators_get_different_numbers(tmp_path: Path) -> None:
    creators = [python(CREATOR, tmp_path, who) for who in (1, 2)]
    ended = [c.communicate(timeout=60) for c in creators]
    assert [err for _, err in ended] == ["", ""]
    numbers = [int(n) for out, _ in ended for n in out.split()]
    assert sorted(numbers) == list(range(1, 41))
    assert sorted(p.name for p in (tmp_path / "x").iterdir() if p.name.startswith(".")) == []
    assert all(run.plan.exists() for run in RunDirectory.all(tmp_path / "x"))


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "."])
def test_nothing_is_written_outside_and_nothing_is_left(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="is not in the run directory"):
        RunDirectory.create(tmp_path, "demo", DIGEST, {"plan.json": "{}", path: "x"})
    assert list((tmp_path / "demo").iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo"]


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(HpctrainError, match=r"plan\.json: not a directory|file exists"):
        RunDirectory.create(tmp_path, "demo", DIGEST, {"plan.json": "{}", "plan.json/x": "y"})
    assert list((tmp_path / "demo").iterdir()) == []


def test_a_run_is_found_by_path_name_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [make(tmp_path) for _ in range(11)]
    other = make(tmp_path, "other")
    assert RunDirectory.find("demo", tmp_path) == runs[10]
    assert RunDirectory.find("demo/2", tmp_path) == runs[1]
    assert RunDirectory.find("other", tmp_path) == other
    assert RunDirectory.find(str(runs[4].path), Path("/nowhere")) == runs[4]
    monkeypatch.chdir(runs[3].path)
    assert RunDirectory.find(".", tmp_path) == runs[3]


@pytest.mark.parametrize("said", ["", "demo/9", "nope", "..", "demo/x", "demo/1/2", "/", "a\0b", "x" * 5000])
def test_what_is_no_run_is_said(tmp_path: Path, said: str) -> None:
    make(tmp_path)
    with pytest.raises(ConfigError, match="no run") as caught:
        RunDirectory.find(said, tmp_path)
    assert caught.value.problems[0].code == "no-run"


def test_the_nearest_name_is_the_hint(tmp_path: Path) -> None:
    make(tmp_path, "guanaco-lora")
    with pytest.raises(ConfigError) as caught:
        RunDirectory.find("guanaco-lroa", tmp_path)
    assert caught.value.problems[0].hint == "guanaco-lora"
    with pytest.raises(ConfigError, match="the newest of guanaco-lora is guanaco-lora/1"):
        RunDirectory.find("guanaco-lora/7", tmp_path)
