"""The table of network stacks: whole, dated, each of its rows met by somebody; ranges of versions."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

import attrs
import pytest

from hpctrain.defaults import stacks
from hpctrain.defaults.stacks import Row, Use
from hpctrain.model.cluster import Cluster, Source
from hpctrain.model.network import Precedent
from hpctrain.runfile.facts import load_cluster
from hpctrain.runfile.judging.fact_rules import FACT_CHECKS
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.reading.text import read_toml
from tests.clusters import HOMES

ROWS = stacks.of_any_machine()
GH200, MI250X, A100 = (load_cluster(HOMES[name]) for name in ("isambard", "frontier", "leonardo"))


def test_the_table_is_as_strict_as_a_cluster_s_rows() -> None:
    data = read_toml(stacks.TABLE).data
    for table, cls in (("source", Source), ("precedent", Precedent)):
        for row in data[table]:
            _, faults = Strict(FACT_CHECKS)(row, cls)
            assert faults == (), row


def test_there_are_twenty_that_go_wrong_each_with_a_cure_and_a_page() -> None:
    bad = [row for row in ROWS if row.precedent.verdict != "good"]
    assert len(bad) >= 20
    assert len({row.precedent.name for row in ROWS}) == len(ROWS)
    for row in bad:
        assert row.precedent.cure, row
        assert row.source is not None
        assert row.source.url.startswith("https://"), row
        datetime.date.fromisoformat(row.source.checked)


def test_every_source_says_something() -> None:
    said = {row.precedent.source for row in ROWS}
    assert {row["id"] for row in read_toml(stacks.TABLE).data["source"]} == said


def _value(pattern: str) -> str:
    """One value that the pattern means; the table's patterns are few and simple."""
    candidates = (
        *(
            "",
            "LL128",
            "^LL",
            "memhooks",
            "PHB",
            "2048",
            "0",
            "1",
            "4",
            "16384",
            "hardware",
            "lnx;cxi",
            "tcp",
        ),
        *("OFI", "ofi", "AWS Libfabric", "Socket", "alt_read"),
    )
    return next(value for value in candidates if re.fullmatch(pattern, value))


def _version(span: str) -> str:
    candidates = ("1.8.1", "1.22.0-SHS12", "2.4.0", "7.1.1", "2.19.3", "2.27.7", "1.20.0")
    return next(version for version in candidates if stacks.is_in(version, span))


def _use(precedent: Precedent, **changes: object) -> Use:
    use = Use(
        nodes=2 if precedent.nodes == "many" else 1,
        stack={part: _version(span) for part, span in precedent.stack.items()},
        values={name: _value(pattern) for name, pattern in precedent.var.items()},
        all_to_all=precedent.traffic == "all-to-all",
    )
    return attrs.evolve(use, **changes)  # type: ignore[arg-type]


def _machine(precedent: Precedent) -> Cluster:
    if precedent.fabric == "infiniband":
        return A100
    return MI250X if precedent.gpu == "MI250X" else GH200


def _met(precedent: Precedent, use: Use) -> bool:
    cluster = _machine(precedent)
    bare = attrs.evolve(cluster, network=attrs.evolve(cluster.network, precedent=()))
    return precedent.name in {row.precedent.name for row in stacks.met(bare, use)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.precedent.name)
def test_a_row_is_met_where_all_holds_and_nowhere_else(row: Row) -> None:
    precedent = row.precedent
    assert _met(precedent, _use(precedent))
    assert not _met(precedent, _use(precedent, nodes=1 if precedent.nodes == "many" else 2))
    for name in precedent.var:
        assert not _met(precedent, _use(precedent, unknown=frozenset({name}))), name
        values: Mapping[str, str] = {**_use(precedent).values, name: "another value of nobody"}
        is_negative = "?!" in precedent.var[name]  # it means every value but some
        assert is_negative or not _met(precedent, _use(precedent, values=values)), name
    for part in precedent.stack:
        stack: Mapping[str, str] = {k: v for k, v in _use(precedent).stack.items() if k != part}
        assert not _met(precedent, _use(precedent, stack=stack)), part
    if precedent.traffic == "all-to-all":
        assert not _met(precedent, _use(precedent, all_to_all=False))
    if precedent.unasked:
        assert not _met(precedent, _use(precedent, scheduler_words=[f"--network={precedent.unasked}"]))


def test_what_a_module_may_set_is_not_taken_for_left_open() -> None:
    (row,) = [row for row in ROWS if row.precedent.name == "no-plugin-named"]
    assert _met(row.precedent, Use(nodes=2, stack={}, values={}))
    assert not _met(row.precedent, Use(nodes=2, stack={}, values={}, is_whole=False))


@pytest.mark.parametrize(
    ("version", "span", "expected"),
    [
        ("1.8.1", "<1.17", True),
        ("1.17.0", "<1.17", False),
        ("1.17.0", "<=1.17", True),
        ("1.17.5", "<=1.17", True),
        ("1.18", "<=1.17", False),
        ("1.22.0-SHS12.0.2", "1.22", True),
        ("1.2.0", "1.22", False),
        ("2", "2.0", True),
        ("2.4.1", ">=2.3,<3", True),
        ("10.0", ">=9.1", True),
        ("git", "<2", False),
    ],
)
def test_ranges(version: str, span: str, expected: bool) -> None:
    assert stacks.is_in(version, span) is expected
