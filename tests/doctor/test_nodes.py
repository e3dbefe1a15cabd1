"""What compute nodes tell: programs asked with limits, lines judged as a login node's, nodes that differ."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hpctrain.doctor import nodes, together
from hpctrain.doctor.question import Answer, Finding, Verdict
from hpctrain_job import node_answers
from hpctrain_job.node_answers import PYTHON
from tests.clusters import HOMES
from tests.doctor.rig import cluster, site

OK, DIFFERS, UNKNOWN, SILENT = Verdict.OK, Verdict.DIFFERS, Verdict.UNKNOWN, Verdict.SILENT
GOOD = {
    "all-reduce": json.dumps(
        {
            "world": 2,
            "rank": 0,
            "engine": "NCCL 2.26.6",
            "device": "cuda",
            "operations": {
                "all_reduce": {"right": True, "seconds": 0.004, "bytes": 2**26},
                "all_to_all": {"right": True, "seconds": 0.004, "bytes": 2**26},
            },
        }
    ),
    "gpus": "97871\n97871\n97871\n97871\n",
    "driver": "565.57.01\n",
    "memory_gb": "880000000\n",
    "cores_per_node": "288\n",
    "interface": "hsn0\nhsn1\nlo\n",
    "role nodelocal": "at=/dev/shm/me\nfolder=1\nwritable=1\nkib=400000000 300000000\nfiles=9000 8000\n",
    "network stack": json.dumps({"parts": {"plugin": {"path": "/p", "version": "1.8.1"}}, "values": {}}),
    "the hub": '{"status": 200, "ahead": 0}',
    "the package index": '{"status": 200}',
    "limits": "open files 1024\n",
    "cgroup": "version 2, memory max\n",
}
"""Of a node of Isambard as the facts have it."""


def lines(**reports: Mapping[str, Any]) -> dict[str, Finding]:
    """Fact -> line, where these nodes answered (host -> what differs from a good node's answers)."""
    asked_of = nodes.questions(site(cluster("isambard")), nodes=len(reports))
    now = time.time()
    answers = {
        host: {
            "began": now + change.get("ahead", 0),
            "answers": {name: Answer(out=out) for name, out in {**GOOD, **change}.items() if name != "ahead"},
        }
        for host, change in reports.items()
    }
    found = nodes.examined(asked_of, answers, now - 1, len(answers))
    assert {line.area for line in found} == {nodes.AREA}
    return {line.fact: line for line in found}


def differing(found: Mapping[str, Finding]) -> set[str]:
    """The facts that differ."""
    return {fact for fact, line in found.items() if line.verdict is DIFFERS}


def test_the_names_of_good_answers_are_those_of_the_questions() -> None:
    assert {q.name for q in nodes.questions(site(cluster("isambard")), nodes=2)} >= GOOD.keys()
    assert "all-reduce" not in {q.name for q in nodes.questions(site(cluster("isambard")))}


def test_nodes_as_the_facts_have_them_are_told_once() -> None:
    found = lines(nid1={}, nid2={})
    assert differing(found) == set()
    assert found["GPUs of a node"].verdict is OK
    assert found["the clock beside the login node's"].verdict is OK
    assert found["version of plugin"].verdict is OK
    assert not [fact for fact in found if " on nid" in fact]
    assert found[together.VALUES].found == "right: all_reduce, all_to_all over NCCL 2.26.6"
    assert found[together.BANDWIDTH].found == "16.78 GB/s a node, 64 MB over NCCL 2.26.6"


def test_the_slowest_node_is_the_bandwidth_and_sockets_are_named_as_such() -> None:
    row = json.loads(GOOD["all-reduce"])
    row["engine"] = "sockets"
    row["operations"]["all_reduce"]["seconds"] = 0.4
    found = lines(nid1={}, nid2={"all-reduce": json.dumps(row)})
    assert found[together.BANDWIDTH].found == "0.17 GB/s a node, 64 MB over sockets"
    assert "TCP alone was measured" in found[together.BANDWIDTH].todo


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"gpus": "97871\n97871\n97871\n"}, "GPUs of a node"),
        ({"gpus": "40960\n" * 4}, "GPUs of a node"),
        ({"memory_gb": "400000000\n"}, "memory of a node (GB)"),
        ({"cores_per_node": "72\n"}, "cores of a node"),
        ({"role nodelocal": "at=/dev/shm\nfolder=1\n"}, "role nodelocal"),
        ({"all-reduce": GOOD["all-reduce"].replace("true", "false", 1)}, together.VALUES),
        ({"all-reduce": '{"world": 2, "rank": 1, "fault": "1 of 2 came within 20 s"}'}, together.VALUES),
        ({"interface": "eth0\nlo\n"}, "the fast network's interface"),
        ({"ahead": 600}, "the clock beside the login node's"),
        ({"ahead": -600}, "the clock beside the login node's"),
        ({"the hub": '{"fault": "timed out"}'}, "the hub, https://huggingface.co"),
        (
            {"network stack": GOOD["network stack"].replace("1.8.1", "1.6.0")},
            "version of plugin",
        ),
    ],
)
def test_a_node_that_differs_is_named(change: Mapping[str, Any], fact: str) -> None:
    found = lines(nid1={}, nid2=change)
    assert f"{fact}, on nid2" in differing(found)
    assert {name.rpartition(" on ")[2] for name in differing(found)} == {"nid2"}


def test_a_node_that_says_nothing_is_counted() -> None:
    asked_of = nodes.questions(site(cluster("isambard")))
    (counted,) = nodes.examined(asked_of, {}, 0, 2)
    assert (counted.verdict, counted.expected, counted.found) == (DIFFERS, "2", "none")


@pytest.mark.parametrize("name", sorted(HOMES))
def test_every_question_has_its_own_name_and_a_line_without_an_answer(name: str) -> None:
    questions = nodes.questions(site(cluster(name)), nodes=2)
    assert len({q.name for q in questions}) == len(questions)
    for question in questions:
        for answer in (Answer(fault="it is not here"), Answer(), Answer(out="\x00?\n", code=3)):
            assert {line.verdict for line in question.findings(answer)} <= {SILENT, UNKNOWN}, question.name
    json.loads(nodes.document(questions))


def test_programs_are_asked_with_limits_and_answers_are_whole(tmp_path: Path) -> None:
    questions = [
        {"name": "python", "argv": [PYTHON, "-c", "print(input())"], "seconds": 10, "given": "word"},
        {"name": "hangs", "argv": ["sleep", "60"], "seconds": 0.2, "given": ""},
        {"name": "missing", "argv": ["hpctrain-nowhere"], "seconds": 1, "given": ""},
        {"name": "fails", "argv": ["sh", "-c", "echo no >&2; exit 3"], "seconds": 5, "given": ""},
    ]
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    argv = [
        sys.executable,
        node_answers.__file__,
        str(tmp_path / "questions.json"),
        str(tmp_path / "answers"),
    ]
    subprocess.run(argv, check=True, timeout=60)
    (report,) = nodes.answered(tmp_path / "answers").values()
    assert report["answers"] == {
        "python": Answer(out="word\n"),
        "hangs": Answer(fault="sleep did not answer within 0.2 s"),
        "missing": Answer(fault="hpctrain-nowhere is not here"),
        "fails": Answer(err="no\n", code=3),
    }
    assert abs(report["began"] - time.time()) < 60
    assert [path.suffix for path in (tmp_path / "answers").iterdir()] == [".json"]


def test_every_question_can_be_asked_of_this_machine() -> None:
    questions = json.loads(nodes.document(nodes.questions(site(cluster("isambard")))))
    here = [q for q in questions if q["name"] not in ("the hub", "the package index")]
    answers = node_answers.answers(here)
    assert {name for name, row in answers.items() if row.get("fault")} <= {"gpus", "driver"}
    parts = json.loads(answers["network stack"]["out"])
    assert set(parts) == {"parts", "values"}
