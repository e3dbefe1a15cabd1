"""Which nodes are unfit by what they measured in pairs, and who meets whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.vet import judge, partners, together

NODES = tuple(f"n{number}" for number in range(8))
FINE = {"all_reduce": {"right": True, "seconds": 0.01, "bytes": 4}}


def reports(count: int = 8, **bad: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All that a sweep left, where every pair with a bad node has what is wrong with it."""
    names = NODES[:count]
    rows: dict[str, dict[str, Any]] = {
        name: {"products": [{"device": "cuda", "right": True, "seconds": 0.1}] * 4, "rounds": []}
        for name in names
    }
    for row in partners.pairs(count):
        for one, other in row:
            change = bad.get(names[one]) or bad.get(names[other]) or {}
            for node, partner in ((one, other), (other, one)):
                meeting = {"engine": "NCCL 2.27", "device": "cuda", "fault": "", "operations": FINE}
                rows[names[node]]["rounds"].append({**meeting, "partner": names[partner], **change})
    return rows


def kinds(measured: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {node: fault.kind for node, fault in together.judge(tuple(measured), measured).items()}


@pytest.mark.parametrize("count", range(2, 34))
def test_nobody_meets_a_partner_twice_and_all_meet_as_many(count: int) -> None:
    rounds = partners.pairs(count)
    met = [frozenset(pair) for row in rounds for pair in row]
    assert len(set(met)) == len(met)
    for row in rounds:
        assert sorted(node for pair in row for node in pair) == sorted({n for pair in row for n in pair})
        assert len(row) == count // 2
    assert len(rounds) == min(3, count - 1 + count % 2)
    for node in range(count):
        mine = [meeting for meeting in partners.of(node, count) if meeting]
        assert len(mine) >= len(rounds) - count % 2
        assert all(node in meeting[1:] for meeting in mine)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"fault": "2 of 8 came within 12 s"}, "no collective"),
        ({"operations": {"all_to_all": {"right": False, "seconds": 0.01, "bytes": 4}}}, "wrong collective"),
        ({"operations": {"all_reduce": {"right": True, "seconds": 0.05, "bytes": 4}}}, "slow collective"),
    ],
)
@pytest.mark.parametrize("count", [4, 5, 7, 8])
def test_a_node_whose_pairs_all_failed_is_to_blame_and_no_partner(
    change: dict[str, Any], kind: str, count: int
) -> None:
    assert kinds(reports(count, n2=change)) == {"n2": kind}


def test_a_link_that_fails_between_fit_nodes_is_named_and_no_node(tmp_path: Path) -> None:
    measured = reports()
    for node, partner in (("n0", "n7"), ("n7", "n0")):
        (row,) = [row for row in measured[node]["rounds"] if row["partner"] == partner]
        row["fault"] = "Connection reset by peer"
    assert kinds(measured) == {}
    (link,) = together.bad_links(measured, {})
    assert link == "between n0 and n7: no collective: Connection reset by peer"


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ({"device": "cuda", "right": False, "seconds": 0.1}, "wrong product"),
        ({"device": "cuda", "right": True, "seconds": 0.3}, "slow GPU"),
        ({"fault": "CUDA error: an illegal memory access was encountered"}, "no product"),
    ],
)
def test_a_gpu_that_multiplies_wrongly_slowly_or_not(product: dict[str, Any], kind: str) -> None:
    measured = reports()
    measured["n3"]["products"] = [*measured["n3"]["products"][:3], product]
    assert kinds(measured) == {"n3": kind}


def test_processors_may_be_busy_for_a_moment() -> None:
    measured = reports(
        n1={"device": "cpu", "operations": {"all_reduce": FINE["all_reduce"] | {"seconds": 0.4}}}
    )
    assert kinds(measured) == {}


def test_the_judge_reads_whole_reports_and_names_what_they_ran_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vet").mkdir()
    for number, (node, report) in enumerate(reports(4, n1={"fault": "it hangs"}).items()):
        (tmp_path / f"vet/sweep-{number}.json").write_text(json.dumps({**report, "node": node}))
    (tmp_path / "vet/sweep-9.json").write_text('{"node": "n9"')
    (tmp_path / "vet/0.json").write_text("{}")
    words = ["--step", str(tmp_path), "--job", "7", "--nodes", "n0 n1 n2 n3", "--count", "4", "--needed", "3"]
    assert judge.main([*words, "--together"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "n1\n"
    assert "collectives in pairs over NCCL 2.27" in shown.err
    assert "n1 is unfit: no collective: it hangs (with " in shown.err
    assert judge.unfit(tmp_path, "7") == ("n1",)


def test_of_two_nodes_that_cannot_talk_nobody_can_say_which_is_to_blame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vet").mkdir()
    for number, (node, report) in enumerate(reports(2, n1={"fault": "it hangs"}).items()):
        (tmp_path / f"vet/sweep-{number}.json").write_text(json.dumps({**report, "node": node}))
    words = ["--step", str(tmp_path), "--job", "7", "--nodes", "n0 n1", "--count", "2", "--needed", "2"]
    assert judge.main([*words, "--together"]) == 0
    assert "every node fails its vetting" in capsys.readouterr().err
