"""What goes into a judgement: groups, recordings, processes, pages, pulses that lie, and the hook."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpctrain.run.prepare import jobzip
from hpctrain_job.hangs import groups, pages, processes, pulse, recorder, verdicts
from hpctrain_job.hangs.evidence import Doing, Kind, Operation, Rank, Verdict
from hpctrain_job.hangs.node import Node, checked
from hpctrain_job.hangs.processes import Sample
from hpctrain_job.hangs.thresholds import Thresholds
from hpctrain_job.hangs.watch import sweep
from tests.patience import wait_for

RANK = Rank(
    3, "n1", 1, {"0(0:4:1)": 7}, Operation("0(0:4:1)", 7, "gloo:all_reduce", "10"), "a > b",
    frozenset({"b > a"}), ("train.py:main",), Doing.IDLE, 2.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "packed"),
    [([0], "0:1:1"), (range(8), "0:8:1"), ([1, 5, 9], "1:3:4"), ([0, 1, 5, 7, 9], "0:2:1,5:3:2"), ([], "")],
)
def test_groups_are_short_texts(ranks: list[int], packed: str) -> None:
    assert groups.pack(ranks) == packed
    assert groups.unpack(packed) == tuple(ranks)


@pytest.mark.parametrize("text", ["0:99999999:1", "0:0:1", "a", "1:2", "0:-1:1"])
def test_a_group_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"group of|values to unpack|invalid literal"):
        groups.unpack(text)


def entry(number: int, name: str = "all_reduce", group: str = "0", **facts: Any) -> dict[str, Any]:
    return {
        "record_id": number, "collective_seq_id": number, "process_group": [group, "default_pg"],
        "profiling_name": f"gloo:{name}", "input_sizes": [[10, 2]], "retired": True, "state": "scheduled",
        "is_p2p": False, **facts,
    }  # fmt: skip


def test_a_recording_tells_the_first_operation_that_is_not_complete_and_the_order() -> None:
    entries = [entry(1), entry(2, "barrier"), entry(3), entry(9, is_p2p=True, retired=False)]
    entries += [entry(5, "barrier", retired=False), entry(4, retired=False)]
    read = recorder.recording(json.dumps({"entries": entries}), {"0": "0(0:4:1)"}, {"0(0:4:1)": "4:1"})
    assert read is not None
    assert read.pending == Operation("0(0:4:1)", 4, "gloo:all_reduce", "10x2")
    assert read.order == "4:1 gloo:all_reduce > 4:1 gloo:all_reduce"
    assert read.orders == {"4:1 gloo:all_reduce > 4:1 gloo:barrier", "4:1 gloo:barrier > 4:1 gloo:all_reduce"}


def test_a_recorder_that_is_off_says_nothing() -> None:
    assert recorder.recording('{"entries": []}', {}, {}) is None
    assert recorder.reader(SimpleNamespace()) is None
    assert recorder.reader(SimpleNamespace(_dump_nccl_trace_json=lambda: "{}")) is not None


SAMPLES = [
    (Sample(2.0, "T"), Doing.STOPPED),
    (Sample(2.0, cpu=0.01), Doing.IDLE),
    (Sample(2.0, cpu=1.0), Doing.BUSY),
    (Sample(2.0, "R"), Doing.BUSY),
    (Sample(2.0, moved=9_000_000), Doing.MOVING),
    (Sample(2.0, moved=90_000), Doing.IDLE),
    (Sample(2.0, children_cpu=1.5), Doing.CHILD),
    (Sample(0.0), Doing.UNKNOWN),
]


@pytest.mark.parametrize(("last", "doing"), SAMPLES)
def test_what_a_process_does(last: Sample, doing: Doing) -> None:
    assert processes.doing([Sample(0.0), last]) is doing


def test_a_process_as_the_kernel_tells_of_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert processes.born(child.pid)
        os.kill(child.pid, signal.SIGSTOP)

        def stopped() -> bool:
            look = processes.sample(child.pid, 0.0)
            return look is not None and look.state == "T"

        wait_for("the stop of the child", stopped, 20)
    finally:
        child.kill()
        child.wait()
    assert processes.born(child.pid) == ""
    assert processes.sample(child.pid, 0.0) is None


def test_pages_of_nodes_become_one_look_and_an_old_one_says_that_its_node_is_silent(tmp_path: Path) -> None:
    members = {"0(0:4:1)": "0:4:1"}
    own = pages.write(tmp_path, 0, 40.0, [replace(RANK, rank=0, node="n0", node_rank=0)], members)
    late = pages.write(tmp_path, 1, 0.2, [RANK], members)
    os.utime(late, (time.time() - 500, time.time() - 500))
    (tmp_path / "2.json").write_text('{"v": 1, "still": 1.0, "ranks": [{"rank": 5}], "members": {}}')
    look = pages.read(tmp_path, own, silent=150)
    assert look.still == pytest.approx(40.0, abs=1.0)
    assert look.members == {"0(0:4:1)": (0, 1, 2, 3)}
    assert look.ranks == (replace(RANK, rank=0, node="n0", node_rank=0), replace(RANK, doing=Doing.SILENT))


def test_pulses_that_are_cut_or_lie_are_left_out(tmp_path: Path) -> None:
    document = {
        "rank": 1, "pid": os.getpid(), "born": "x", "at": 1.0, "over": False, "numbers": {"0": 3},
        "members": {"0": "0:2:1"}, "stack": [],
    }  # fmt: skip
    assert checked({**document, "pending": ["0", 3, "all_reduce", ""]})["pending"] == (
        "0",
        3,
        "all_reduce",
        "",
    )
    (tmp_path / "1.7.json").write_text(json.dumps(document))
    (tmp_path / "2.7.json").write_text(json.dumps({**document, "rank": 2})[:-5])
    lies: list[dict[str, Any]] = [{"numbers": {"0": "x"}}, {"rank": "3"}, {"members": {"0": "0:9999999:1"}}]
    for number, change in enumerate(lies):
        (tmp_path / f"3.{number}.json").write_text(json.dumps({**document, "rank": 3, **change}))
    node = Node(tmp_path, "n0", 0, Thresholds(), now=0.0)
    node.look(1.0)
    assert list(node.documents) == [1]


def test_only_the_own_folder_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    assert pulse.private(str(tmp_path / "open")) is None
    assert pulse.private(str(tmp_path / "link")) is None
    assert pulse.private("") is None
    assert pulse.private(str(tmp_path / "new")) == tmp_path / "new"


def test_what_a_job_left_in_memory_is_removed_by_the_next_watch(tmp_path: Path) -> None:
    folders = [tmp_path / f"hpctrain-{os.getuid()}-{n}" for n in range(3)]
    for folder in folders:
        folder.mkdir(mode=0o700)
    (folders[1] / "watch").write_text("1 0")
    (folders[2] / "watch").write_text(f"{os.getpid()} {processes.born(os.getpid())}")
    sweep(folders[0])
    assert [folder.exists() for folder in folders] == [True, False, True]


def test_a_verdict_is_read_while_it_holds(tmp_path: Path) -> None:
    verdict = Verdict(Kind.IDLE, (3, 4), ("n1", "n2"), (1, 2), ("because",))
    verdicts.write(tmp_path, "7", verdict)
    written = verdicts.newest(tmp_path, "7")
    assert written is not None
    assert written.words == "ranks 3, 4 on n1, n2 hang: it does nothing while others wait for it"
    assert verdicts.newest(tmp_path, "8") is None
    assert verdicts.blamed(tmp_path, "7", ()) == ("n1", "n2")
    assert verdicts.blamed(tmp_path, "7", ("a", "b", "c")) == ("b", "c")
    with (tmp_path / verdicts.FILE).open("a") as file:
        file.write('{"cut": \n')
    assert verdicts.newest(tmp_path, "7") == written
    verdicts.write(tmp_path, "7", verdict, holds=False)
    assert verdicts.newest(tmp_path, "7") is None


def test_the_hook_in_the_jobs_zip_runs_the_environments_own_module_too(tmp_path: Path) -> None:
    (tmp_path / "job.zip").write_bytes(jobzip.build().data)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("import builtins; builtins.own_module = True")
    search = (tmp_path / "job.zip", tmp_path / "job.zip/hpctrain_job/hangs/hook", tmp_path / "site")
    program = "import threading; print(own_module, [t.name for t in threading.enumerate()])"
    done = subprocess.run(
        [sys.executable, "-c", program], text=True, capture_output=True, check=True, timeout=60,
        env={"PYTHONPATH": ":".join(map(str, search)), "HPC_PULSE": str(tmp_path / "pulse")},
    )  # fmt: skip
    assert done.stdout == "True ['MainThread', 'hpctrain-pulse']\n"
    assert done.stderr == ""
    assert not list((tmp_path / "pulse").iterdir()), "who has no groups is no rank"


def test_a_plan_and_a_status_import_nothing_of_it() -> None:
    program = (
        "import sys, hpctrain.session, hpctrain.render.tree, hpctrain.run.live, hpctrain.cli.commands.status;"
        "print([name for name in sys.modules if name.startswith('hpctrain_job.hangs')])"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, env=os.environ)
    assert (done.stdout, done.stderr) == ("[]\n", "")
