"""What is remembered of nodes: rules of time, many writers, strangers, links, damaged files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpctrain_job import bad_nodes
from hpctrain_job.bad_nodes import DAY, PERSON, WEEK, NodeFinding, Place
from hpctrain_job.files import trust
from tests.conftest import ROOT, needs

NOW = 100 * DAY + 5
MINE = os.geteuid()


def place(tmp_path: Path, *owners: str, is_shared: bool = False) -> Place:
    return Place(f"{tmp_path}/role/nodes-olivia-", trust.Accepted(owners), is_shared)


def finding(node: str, at: float, kind: str = "died", until: float = 0.0) -> NodeFinding:
    return NodeFinding(node, kind, "job 7", at, until)


def names(where: Place, now: float = NOW) -> list[str]:
    return [entry.node for entry in where.report(now).nodes]


def test_one_finding_counts_a_day_and_two_days_a_week(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.add([finding("once", NOW - 0.9 * DAY), finding("old", NOW - 1.1 * DAY)])
    where.add([finding("twice", NOW - 6 * DAY), finding("twice", NOW - 5 * DAY)])
    where.add([finding("same-day", NOW - 2 * DAY), finding("same-day", NOW - 2 * DAY + 60)])
    assert names(where) == ["once", "twice"]
    assert names(where, NOW + 2.1 * DAY) == []


def test_a_person_says_how_long(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.add([finding("slow", NOW, PERSON, NOW + 3 * DAY), finding("ever", NOW, PERSON, NOW + 900 * DAY)])
    assert sorted(names(where, NOW + 2 * DAY)) == ["ever", "slow"]
    assert names(where, NOW + 29 * DAY) == ["ever"]
    assert names(where, NOW + 31 * DAY) == []


def test_what_is_forgiven_counts_no_longer_and_may_fail_again(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.add([finding("n1", NOW - 60), finding("n2", NOW - 60)])
    where.forgive(["n1"], "a new cable", NOW - 30)
    assert names(where) == ["n2"]
    where.add([finding("n1", NOW - 10)])
    assert names(where) == ["n1", "n2"]


def test_no_more_than_may_be_left_out(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.add([finding(f"n{number}", NOW - number) for number in range(9)])
    report = where.report(NOW)
    assert [report.avoided(3), report.avoided(0), report.avoided(-1)] == [("n0", "n1", "n2"), (), ()]


def written(folder: Path, text: bytes, name: str = "n1~x.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / name).write_bytes(text)
    (folder / name).chmod(0o600)
    return folder / name


GOOD = {"v": 1, "node": "n1", "kind": "died", "evidence": "x", "at": NOW - 5}


@pytest.mark.parametrize(
    "change",
    [
        {"node": "a,b"}, {"node": "--uid=0"}, {"node": "n[1-9]"}, {"node": "n1\n"}, {"node": ""},
        {"at": "x"}, {"at": float("nan")}, {"at": float("inf")}, {"at": None}, {"node": ["n1"]},
        {"kind": 3}, {"evidence": ["x"]}, {"until": "soon"}, {"until": float("inf")},
    ],
)  # fmt: skip
def test_what_is_no_finding_is_left_out(tmp_path: Path, change: dict[str, object]) -> None:
    where = place(tmp_path)
    written(where.own_folder, json.dumps(GOOD | change).encode())
    report = where.report(NOW)
    assert report.nodes == ()
    assert "n1~x.json is not read" in report.refused[0]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 9000, b" " * 20000 + b"{}"])
def test_what_is_no_document_is_left_out(tmp_path: Path, text: bytes) -> None:
    where = place(tmp_path)
    where.add([finding("n2", NOW)])
    written(where.own_folder, text)
    assert names(where) == ["n2"]
    assert len(where.report(NOW).refused) == 1


def test_words_are_fit_for_a_terminal_and_no_finding_comes_from_the_future(tmp_path: Path) -> None:
    where = place(tmp_path)
    document = GOOD | {"evidence": "\x1b[2Jx\n" + "y" * 5000, "at": NOW + 500 * DAY}
    written(where.own_folder, json.dumps(document).encode())
    (entry,) = where.report(NOW).nodes
    assert entry.findings[0].evidence.isprintable()
    assert [len(entry.findings[0].evidence), entry.until] == [300, NOW + DAY]


def test_links_pipes_and_open_files_are_not_read(tmp_path: Path) -> None:
    where = place(tmp_path)
    path = written(where.own_folder, json.dumps(GOOD).encode())
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(where.own_folder / "n2~x.json")
    written(where.own_folder, json.dumps(GOOD).encode(), "n3~x.json").chmod(0o666)
    report = where.report(NOW)
    assert [report.nodes, len(report.refused)] == [(), 3]


def test_others_count_where_they_are_accepted(tmp_path: Path) -> None:
    """Theirs alone: whoever may write into a folder, its owner is asked for each file."""
    needs("root", MINE == 0, "only root makes files of others")
    tmp_path.chmod(0o755)
    theirs = place(tmp_path).own_folder.with_name("nodes-olivia-4711")
    path = written(theirs, json.dumps(GOOD).encode())
    for item in (theirs, path):
        os.chown(item, 4711, 4711)
    refused = place(tmp_path).report(NOW)
    assert [refused.nodes, "4711" in refused.refused[0]] == [(), True]
    assert names(place(tmp_path, "4711")) == ["n1"]
    os.chown(path, 4712, 4712)
    assert names(place(tmp_path, "4711", "4712")) == []
    os.chown(path, 4711, 4711)
    theirs.chmod(0o777)
    assert names(place(tmp_path, "4711")) == []
    theirs.chmod(0o755)
    theirs.rename(theirs.with_name("nodes-olivia-4799"))  # a folder with another's number
    assert names(place(tmp_path, "4711")) == []


def test_nothing_is_written_into_somebody_else_s_folder(tmp_path: Path) -> None:
    needs("root", MINE == 0, "only root makes files of others")
    where = place(tmp_path, "4711")
    where.own_folder.mkdir(parents=True)
    os.chown(where.own_folder, 4711, 4711)
    with pytest.raises(PermissionError, match="is not yours"):
        where.add([finding("n1", NOW)])
    assert list(where.own_folder.iterdir()) == []


@pytest.mark.parametrize(("is_shared", "modes"), [(True, [0o755, 0o644]), (False, [0o700, 0o600])])
@pytest.mark.parametrize("umask", [0o077, 0])
def test_a_project_reads_what_is_shared(
    tmp_path: Path, is_shared: bool, modes: list[int], umask: int
) -> None:
    where = place(tmp_path, is_shared=is_shared)
    before = os.umask(umask)
    try:
        where.add([finding("n1", NOW)])
    finally:
        os.umask(before)
    (path,) = where.own_folder.iterdir()
    assert [item.stat().st_mode & 0o777 for item in (where.own_folder, path)] == modes


WRITER = """
import sys
from hpctrain_job.bad_nodes import NodeFinding, Place
place = Place(sys.argv[1])
for number in range(60):
    place.add([NodeFinding(f"n{sys.argv[2]}-{number}", "died", "x" * 900, float(sys.argv[3]))])
"""


def test_many_write_at_once_beside_a_reader(tmp_path: Path) -> None:
    where = place(tmp_path)
    environ = os.environ | {"PYTHONPATH": str(ROOT / "core")}
    argv = [sys.executable, "-c", WRITER, where.prefix]
    writers = [subprocess.Popen([*argv, str(who), str(NOW)], env=environ) for who in range(6)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        assert where.report(NOW).refused == ()
        reads += 1
    assert [writer.returncode for writer in writers] == [0] * 6
    assert [len(where.report(NOW).nodes), reads > 0] == [360, True]


def test_of_too_many_findings_the_newest_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, names = place(tmp_path), [f"n{number}" for number in range(9)]
    monkeypatch.setattr(bad_nodes, "MOST", 4)
    where.add([finding(name, NOW) for name in names])
    for age, name in enumerate(names):  # n0 is the newest
        (path,) = where.own_folder.glob(f"{name}~*")
        os.utime(path, (time.time() - age,) * 2)
    report = where.report(NOW)
    assert {entry.node for entry in report.nodes} == {*names[:4]}
    assert report.refused == (
        f"{where.own_folder}: only the newest 4 findings are read, 5 older ones are not",
    )


def test_what_counts_no_longer_is_removed(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.add([finding("n1", time.time())])
    (path,) = where.own_folder.iterdir()
    os.utime(path, (time.time() - 40 * DAY,) * 2)
    where.add([finding("n2", time.time())])
    assert [item.name[:2] for item in where.own_folder.iterdir()] == ["n2"]


def test_a_job_remembers_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = tmp_path / "runs/demo/1-4f1c9a2e/steps/train"
    bad_nodes.remember(step, "7", {"n1": ("died", "x")})  # no place is known: nothing happens
    monkeypatch.setenv("HPC_BAD_NODES", f"{tmp_path}/state/nodes-rig-")
    bad_nodes.remember(step, "7", {"n1": ("hung", "rank 3 on n1 hangs"), "n 2": ("died", "x")})
    assert bad_nodes.known_to_job() == ("n1",)
    where = Place.of_job()
    assert where is not None
    (entry,) = where.report(time.time()).nodes
    assert [entry.findings[0].run, entry.findings[0].evidence] == [
        "demo/1-4f1c9a2e",
        "rank 3 on n1 hangs, job 7",
    ]
    assert entry.until - entry.findings[0].at == pytest.approx(DAY, abs=1)
    assert WEEK > DAY


def test_a_job_goes_on_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HPC_BAD_NODES", f"{tmp_path}/file/nodes-rig-")
    bad_nodes.remember(tmp_path, "7", {"n1": ("died", "x")})
    assert "hpctrain: nodes that failed are not remembered: " in capsys.readouterr().err
