"""Every form that data comes in gives the documents of the same rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpctrain_tokens import hub, pieces, sources
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, prepare
from tests.data import reference
from tests.data.conftest import need

TEXTS = [f"row {i} of the quick brown fox" for i in range(2500)]
ROWS = [{"text": text, "id": i} for i, text in enumerate(TEXTS)]


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def as_gz(folder: Path) -> Path:
    path = folder / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines()[:9000]) + gzip.compress(lines()[9000:]))
    return path


def as_zst(folder: Path) -> Path:
    need("zstandard")
    import zstandard

    path = folder / "a.jsonl.zst"
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(pack(lines()[:9000]) + pack(lines()[9000:]))
    return path


def as_text(folder: Path) -> Path:
    path = folder / "a.txt"
    path.write_text("\n".join(TEXTS))
    return path


def table() -> Any:
    need("pyarrow")
    import pyarrow as pa

    return pa.Table.from_pylist(ROWS)


def as_parquet(folder: Path) -> Path:
    import_table = table()
    import pyarrow.parquet as pq

    pq.write_table(import_table, folder / "a.parquet", row_group_size=300)
    return folder / "a.parquet"


def as_stream(folder: Path) -> Path:
    """The form that `datasets` keeps in its cache."""
    given = table()
    import pyarrow as pa

    with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, given.schema) as writer:
        writer.write_table(given, max_chunksize=100)
    return folder / "a.arrow"


def as_file(folder: Path) -> Path:
    given = table()
    import pyarrow as pa

    with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, given.schema) as writer:
        writer.write_table(given, max_chunksize=100)
    return folder / "a.arrow"


def as_folder(folder: Path) -> Path:
    """What `save_to_disk` or a hub snapshot leaves, with files beside the data."""
    given = folder / "set"
    given.mkdir()
    half = lines().find(b"\n", len(lines()) // 2) + 1
    (given / "data-00000-of-00002.jsonl").write_bytes(lines()[:half])
    (given / "data-00001-of-00002.jsonl").write_bytes(lines()[half:])
    (given / "dataset_info.json").write_text("{}")
    (given / ".hidden.jsonl").write_text("{}")
    return given


FORMS = [as_gz, as_zst, as_text, as_parquet, as_stream, as_file, as_folder]


def documents(inputs: list[str], out: Path, tokenizer: Path, **asked: str) -> list[list[int]]:
    prepare(Request(tuple(inputs), str(out), Options(str(tokenizer)), **asked))  # type: ignore[arg-type]
    return reference.read(Path(f"{out}_text_document"))


@pytest.mark.parametrize("form", FORMS)
def test_each_form(form: Callable[[Path], Path], tmp_path: Path, tokenizer: Path) -> None:
    found = documents([str(form(tmp_path))], tmp_path / "x", tokenizer)
    assert found == reference.tokens(tokenizer, TEXTS)
    assert not list(tmp_path.glob(".*"))


def test_several_inputs_in_their_order(tmp_path: Path, tokenizer: Path) -> None:
    one = reference.jsonl(tmp_path / "b.jsonl", [{"text": "first"}])
    two = reference.jsonl(tmp_path / "a.jsonl", [{"text": "second"}])
    found = documents([str(one), str(two)], tmp_path / "x", tokenizer)
    assert found == reference.tokens(tokenizer, ["first", "second"])


def test_a_zst_that_ends_early(tmp_path: Path, tokenizer: Path) -> None:
    path = as_zst(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="ends early"):
        documents([str(path)], tmp_path / "x", tokenizer)


def test_a_parquet_that_is_none(tmp_path: Path, tokenizer: Path) -> None:
    need("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="cannot be read"):
        documents([str(tmp_path / "a.parquet")], tmp_path / "x", tokenizer)


def test_a_null_in_a_table_names_its_row(tmp_path: Path, tokenizer: Path) -> None:
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"text": "a"}] * 5 + [{"text": None}] + [{"text": "b"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=2)
    with pytest.raises(DataError) as error:
        documents([str(tmp_path / "a.parquet")], tmp_path / "x", tokenizer)
    assert (error.value.faults[0].code, error.value.faults[0].line) == ("not-text", 6)


def snapshot(folder: Path, files: dict[str, str], card: str = "") -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        reference.jsonl(folder / name, [{"text": text}])
    if card:
        (folder / "README.md").write_text(f"---\n{card}\n---\n# a set\n")
    return folder


PLAIN = {"data/train-00000-of-00001.jsonl": "a", "data/test-00000-of-00001.jsonl": "b"}
SUBSETS = {"bio/train.jsonl": "a", "cyber/train.jsonl": "b", "cyber/test.jsonl": "c"}
CARD = """configs:
- config_name: one
  default: true
  data_files:
  - split: train
    path: x/first-*.jsonl
- config_name: two
  data_files: y/*.jsonl"""
CARDED = {"x/first-1.jsonl": "a", "x/second.jsonl": "b", "y/z.jsonl": "c"}


@pytest.mark.parametrize(
    ("files", "card", "subset", "split", "names"),
    [
        (PLAIN, "", "", "train", ["train-00000-of-00001.jsonl"]),
        (PLAIN, "", "", "test", ["test-00000-of-00001.jsonl"]),
        (SUBSETS, "", "cyber", "", ["test.jsonl", "train.jsonl"]),
        (SUBSETS, "", "cyber", "test", ["test.jsonl"]),
        (CARDED, CARD, "", "", ["first-1.jsonl"]),
        (CARDED, CARD, "two", "train", ["z.jsonl"]),
        ({"only.jsonl": "a"}, "", "", "train", ["only.jsonl"]),
    ],
)
def test_splits_and_subsets(
    tmp_path: Path, files: dict[str, str], card: str, subset: str, split: str, names: list[str]
) -> None:
    folder = snapshot(tmp_path, files, card)
    assert [s.path.name for s in sources.find([str(folder)], subset, split)] == names


def test_a_card_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("{}\n")
    (tmp_path / "README.md").write_text("---\ndata_files: [\nconfigs: {\n---\n")
    with pytest.raises(DataError, match="the card of the dataset cannot be read"):
        sources.find([str(tmp_path)])


@pytest.mark.parametrize("configs", ["5", "[5]", "[{data_files: 5}]", "[{data_files: [5, {path: x}]}]"])
def test_a_card_that_says_nothing_of_files(tmp_path: Path, configs: str) -> None:
    (tmp_path / "train.jsonl").write_text("{}\n")
    (tmp_path / "README.md").write_text(f"---\nconfigs: {configs}\ndata_files: x\n---\n")
    assert [source.path.name for source in sources.find([str(tmp_path)])] == ["train.jsonl"]


def test_a_split_behind_a_colon(tmp_path: Path) -> None:
    folder = snapshot(tmp_path, PLAIN)
    assert [s.path.name for s in sources.find([f"{folder}:test"])] == ["test-00000-of-00001.jsonl"]


def test_a_file_has_no_splits(tmp_path: Path) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    with pytest.raises(DataError, match="is a file and has no splits"):
        sources.find([f"{path}:train"])


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is of validation; there is"):
        sources.find([str(snapshot(tmp_path, PLAIN))], split="validation")


def test_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "hub/datasets--org--name"
    (top / "refs").mkdir(parents=True)
    (top / "refs/main").write_text("abc")
    snapshot(top / "snapshots/abc", PLAIN)
    with monkeypatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path))
        patch.setenv("HF_HUB_OFFLINE", "1")
        assert hub.cached("org/name") == top / "snapshots/abc"
        assert len(sources.find(["org/name"])) == 2
        assert len(sources.find(["org/name:test"])) == 1
        with pytest.raises(DataError, match="HF_HUB_OFFLINE"):
            sources.find(["org/other"])


UNREADABLE = {"too large": b"abc" + b" " * (1 << 20), "no text": b"\xff\xfe"}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_a_name_in_the_cache_that_cannot_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """The cache of a project is written by all of it."""
    refs = tmp_path / "hub/datasets--org--name/refs"
    refs.mkdir(parents=True)
    (refs / "main").write_bytes(content)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(DataError) as caught:
        sources.find(["org/name"])
    (fault,) = caught.value.faults
    assert (fault.code, fault.file) == ("data-hub", str(refs / "main"))


def test_a_card_that_is_too_large_is_named(tmp_path: Path) -> None:
    folder = snapshot(tmp_path, PLAIN)
    with (folder / "README.md").open("wb") as card:
        card.truncate((64 << 20) + 1)
    with pytest.raises(DataError, match="card of the dataset cannot be read: it is larger than 65,536 KiB"):
        sources.find([str(folder)])


def test_what_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither a file, a folder nor a name"):
        sources.find([str(tmp_path / "none.jsonl")])


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 10**6])
def test_pieces_hold_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pieces, "SIZE", size)
    given = [b"a" * n for n in (0, 1, 5, 63, 64, 65, 200, 3)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(given))
    found = [
        row.raw for piece in pieces.divide(sources.find([str(path)]), {}) for row in pieces.Reading(piece)
    ]
    assert [raw.rstrip(b"\n") for raw in found if raw is not None] == given


def test_the_columns_are_told(tmp_path: Path, tokenizer: Path) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"body": "a", "title": "b"}])
    with pytest.raises(DataError, match='no column "text" or "messages"; the columns are: body, title'):
        documents([str(path)], tmp_path / "x", tokenizer)
