"""Which nodes are unfit, from what they measured; and what one node really measures here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.vet import judge, node
from hpctrain_job.vet.judgement import Fault, Terms
from hpctrain_job.vet.judgement import judge as judged

GPUS = [{"memory": 97871, "errors": 0}] * 4
FINE: dict[str, Any] = {
    "host": "n",
    "began": 1000.0,
    "gpus": GPUS,
    "gpu_fault": "",
    "counted": True,
    "memory": 2**39,
    "product": "abc",
    "seconds": 0.2,
    "disk_fault": "",
}
NODES = tuple(f"n{number}" for number in range(8))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"gpus": GPUS[:3]}, "GPUs missing"),
        ({"gpus": [], "gpu_fault": "nvidia-smi is not here"}, "no GPUs"),
        ({"gpus": [*GPUS[:3], {"memory": 81000, "errors": 0}]}, "memory of a GPU"),
        ({"gpus": [*GPUS[:3], {"memory": 97871, "errors": 2}]}, "errors of a GPU"),
        ({"product": "abd"}, "wrong product"),
        ({"seconds": 0.5}, "slow"),
        ({"memory": 2**38}, "memory"),
        ({"disk_fault": "/tmp is full"}, "disk"),
        ({"began": 1200.0}, "clock"),
        (None, "silent"),
    ],
)
def test_one_bad_node_of_eight_is_named_and_no_other(change: dict[str, Any] | None, kind: str) -> None:
    reports = dict.fromkeys(NODES, FINE)
    del reports["n5"]
    if change is not None:
        reports["n5"] = {**FINE, **change}
    faults = judged(NODES, reports, Terms(gpus=4))
    assert {name: fault.kind for name, fault in faults.items()} == {"n5": kind}


def test_nodes_that_differ_a_little_are_fit() -> None:
    reports = {
        name: {**FINE, "seconds": 0.2 + number / 50, "began": 1000.0 + 3 * number}
        for number, name in enumerate(NODES)
    }
    assert judged(NODES, reports, Terms(gpus=4)) == {}


def test_this_node_measures_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    node.main(tmp_path / "vet", "", "0")
    node.main(tmp_path / "vet", "", "1")
    reports = judge.reports(tmp_path / "vet", ("a", "b"))
    assert (
        judged(("a", "b"), {**reports, "b": {**reports["b"], "seconds": reports["a"]["seconds"]}}, Terms(0))
        == {}
    )
    assert reports["a"]["product"] == reports["b"]["product"]
    (tmp_path / "vet/2.json").write_text('{"host": "c"')
    assert set(judge.reports(tmp_path / "vet", ("a", "b", "c"))) == {"a", "b"}


def test_gpus_as_the_drivers_program_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for nvidia-smi and rocm-smi, which print what these print."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert node.gpus_of("cuda") == ([], "nvidia-smi is not here")
    _program(tmp_path / "nvidia-smi", "97871, 0\n97871, 3\n97871, [N/A]\n")
    errors = [gpu["errors"] for gpu in node.gpus_of("cuda")[0]]
    assert errors == [0, 3, 0]
    head = "device,VRAM Total Memory (B),VRAM Total Used Memory (B)\n"
    _program(tmp_path / "rocm-smi", head + "card0,68702699520,10960896\ncard1,68702699520,10960896\n")
    assert node.gpus_of("rocm") == ([{"memory": 65520, "errors": 0}] * 2, "")
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    assert node.gpus_of("cuda") == ([], "nvidia-smi: No devices were found")


def test_findings_are_lines_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vet").mkdir()
    for rank in range(4):
        report = {**FINE, "rank": rank, "gpus": [] if rank == 2 else GPUS}
        (tmp_path / f"vet/{rank}.json").write_text(json.dumps(report))
    words = ["--step", str(tmp_path), "--job", "7", "--nodes", "a b c d", "--count", "4", "--gpus", "4"]
    assert judge.main([*words, "--needed", "3"]) == 0
    assert capsys.readouterr().out == "c\n"
    assert judge.main([*words, "--needed", "4"]) == 80
    assert "3 of 4 nodes are fit, 4 are needed" in capsys.readouterr().err
    assert judge.unfit(tmp_path, "7") == ("c",)
    assert judge.unfit(tmp_path, "8") == ()
    line = json.loads((tmp_path / "vetted.jsonl").read_text().splitlines()[0])
    fault = Fault(line["kind"], line["evidence"])
    assert (line["node"], fault) == ("c", Fault("GPUs missing", "0 of 4 answer"))


def test_what_is_wrong_with_every_node_is_wrong_with_the_vetting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--step", str(tmp_path), "--job", "7", "--nodes", "a b", "--count", "2", "--needed", "2"]
    assert judge.main(words) == 0
    assert "every node fails its vetting, so none is left out (silent on a" in capsys.readouterr().err
    assert not (tmp_path / "vetted.jsonl").exists()


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
    path.chmod(0o755)
