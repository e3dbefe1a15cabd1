"""The columns of data on disk are those that its own library finds, without any library."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.tables import columns, parquet
from tests.conftest import needs

ROWS = [{"nb": "hei", "nn": "hei"}, {"nb": "bok", "nn": "bok"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def seen(path: Path) -> set[str]:
    return set().union(*columns.of(path))


@pytest.fixture(scope="module")
def arrow() -> Any:
    """The library that writes what we read."""
    needs("data", importlib.util.find_spec("pyarrow") is not None, "pyarrow is not installed")
    import pyarrow.parquet

    return pyarrow


def _type(arrow: Any, chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(7 if depth else 4)
    if kind < 4:
        return (arrow.string(), arrow.int64(), arrow.float32(), arrow.timestamp("us"))[kind]
    if kind == 4:
        return arrow.list_(_type(arrow, chance, depth - 1))
    if kind == 5:
        return arrow.map_(arrow.string(), _type(arrow, chance, depth - 1))
    return arrow.struct([(f"in{n}", _type(arrow, chance, depth - 1)) for n in range(chance.randint(1, 20))])


@pytest.mark.parametrize("seed", range(40))
def test_parquet_of_any_schema(arrow: Any, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fields = [(f"felt {n} æ", _type(arrow, chance, 3)) for n in range(chance.choice((1, 3, 14, 15, 16, 40)))]
    schema = arrow.schema(fields)
    path = tmp_path / "x.parquet"
    arrow.parquet.write_table(schema.empty_table(), path, compression=chance.choice(("snappy", "gzip")))
    assert parquet.columns(path) == arrow.parquet.read_schema(path).names


@pytest.fixture
def whole(arrow: Any, tmp_path: Path) -> bytes:
    """The bytes of a small Parquet file."""
    arrow.parquet.write_table(arrow.table({"nb": ["hei"], "nn": ["hei"]}), tmp_path / "whole")
    return (tmp_path / "whole").read_bytes()


def test_a_parquet_file_that_is_cut_is_none(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for end in (*range(0, len(whole), 9), len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="not a complete Parquet"):
            parquet.columns(path)


def test_a_spoilt_parquet_file_gives_an_answer_or_none(whole: bytes, tmp_path: Path) -> None:
    path, chance, given = tmp_path / "x.parquet", random.Random(7), 0
    for _ in range(400):
        spoilt = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            spoilt[chance.randrange(len(whole) - 200, len(whole))] = chance.randrange(256)
        path.write_bytes(spoilt)
        try:
            given += bool(seen(path))
        except columns.Unreadable as error:
            given += "x.parquet" in str(error)
    assert given == 400


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", LINES),
        ("x.ndjson", "\n" + LINES),
        ("x.json", json.dumps(ROWS, indent=1)),
        ("x.json", "\ufeff" + LINES),
        ("x.csv", 'nb,"nn"\n"a,b",c\n'),
        ("x.tsv", "nb\tnn\na\tb\n"),
    ],
)
def test_text_of_each_kind(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert seen(tmp_path / name) == {"nb", "nn"}
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert seen(packed) == {"nb", "nn"}


def test_a_folder_is_all_its_data(arrow: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.jsonl").write_text(LINES)
    arrow.parquet.write_table(arrow.table({"nn_husnorm": ["hei"]}), tmp_path / "data/eval.parquet")
    (tmp_path / "README.md").write_text("---\n---\n")
    (tmp_path / ".hidden.bin").write_bytes(b"\0")
    (tmp_path / "notes.txt").write_text("hei")
    assert seen(tmp_path) == {"nb", "nn", "nn_husnorm", "text"}


def test_a_file_of_rows_is_read_as_far_as_columns_are_taken_from(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"nb": "x" * 1000}) + "\n" for _ in range(11000)) + '{"late": 1}\n')
    assert seen(path) == {"nb"}
    first = next(iter(columns.of(path)))
    assert first == {"nb"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.arrow", b"ARROW1"),
        ("x.jsonl.zst", b"\x28\xb5\x2f\xfd"),
        ("x.jsonl", b'{"nb": '),
        ("x.jsonl", b"[1, 2]"),
        ("x.json", b"[" * 100_000),
        ("x.jsonl", b'"hei"\n'),
        ("x.jsonl", b"\xff\xfe\x00"),
        ("x.jsonl.gz", b"no gzip"),
        ("x.jsonl.gz", gzip.compress(LINES.encode())[:-12]),
        ("x.csv", b"\xff\xfe"),
    ],
)
def test_what_cannot_be_judged_is_said_to_be_so(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(columns.Unreadable):
        seen(tmp_path / name)


def test_what_is_not_there_has_no_columns(tmp_path: Path) -> None:
    with pytest.raises(columns.Unreadable):
        seen(tmp_path / "none.jsonl")
