"""The files byte by byte: against an independent writer, and against known hashes."""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain_tokens import indexed, nanoset, widths
from hpctrain_tokens.faults import DataError
from tests.data import reference

DOCUMENTS = [[1, 2, 3, 0], [65499, 0], [0], [7] * 300]
INDEX_I = "9333c87435cd1c991312f731d08f535d8610b65a9f880862fb2e0c3313ae0d84"


def index(documents: list[list[int]], code: str) -> bytes:
    out = io.BytesIO()
    indexed.write_index(out, lambda: iter([len(d) for d in documents]), code)
    return out.getvalue()


@pytest.mark.parametrize(("code", "number"), [("H", 8), ("i", 4)])
def test_the_index_is_what_the_trainers_write(tmp_path: Path, code: str, number: int) -> None:
    reference.write(tmp_path / "a", DOCUMENTS, number)
    assert index(DOCUMENTS, code) == (tmp_path / "a.idx").read_bytes()


@given(st.lists(st.lists(st.integers(0, 65499), max_size=5), max_size=20))
def test_any_index_with_empty_documents(documents: list[list[int]]) -> None:
    made = index(documents, "H")
    sequences, ends = struct.unpack_from("<QQ", made, 18)
    assert (sequences, ends) == (sum(map(bool, documents)), len(documents) + 1)
    sizes = struct.unpack_from(f"<{sequences}i", made, 34)
    assert list(sizes) == [len(d) for d in documents if d]
    assert len(made) == 34 + 12 * sequences + 8 * ends


def test_known_bytes() -> None:
    """Fixed once, by hand from the table of the format: a change here is a change of the format."""
    assert index([[1, 2], [3]], "H").hex() == (
        "4d4d494449445800000100000000000000080200000000000000030000000000000002000000010000000000000000000000"
        "0400000000000000000000000000000001000000000000000200000000000000"
    )
    assert hashlib.sha256(index(DOCUMENTS, "i")).hexdigest() == INDEX_I


def test_a_long_index_is_written_in_parts() -> None:
    lengths = [1 + i % 3 for i in range(indexed.CHUNK + 5)]
    out = io.BytesIO()
    indexed.write_index(out, lambda: iter(lengths), "H")
    made = out.getvalue()
    sizes = struct.unpack_from(f"<{len(lengths)}i", made, 34)
    assert list(sizes) == lengths
    offsets = struct.unpack_from(f"<{len(lengths)}q", made, 34 + 4 * len(lengths))
    assert offsets[-1] == 2 * sum(lengths[:-1])


@pytest.mark.parametrize(
    ("vocabulary", "compat", "width"),
    [
        (65499, "neox", 2),
        (65500, "neox", 4),
        (65500, "megatron", 4),
        (65500, "nanotron", 2),
        (65536, "nanotron", 2),
        (65537, "nanotron", 4),
    ],
)
def test_the_width_of_a_token(vocabulary: int, compat: str, width: int) -> None:
    assert widths.size(widths.of(vocabulary, compat)) == width


def test_a_pair_is_read(tmp_path: Path) -> None:
    reference.write(tmp_path / "a", DOCUMENTS, 8)
    pair = indexed.Indexed(tmp_path / "a")
    assert (pair.documents, pair.tokens, pair.largest()) == (4, 307, 65499)
    assert [pair.sequence(i) for i in range(4)] == DOCUMENTS
    assert pair.sequence(3, 2) == [7, 7]


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (lambda b, i: (b, i[:20]), "shorter than its header"),
        (lambda b, i: (b, i[:-8]), "size it announces"),
        (lambda b, i: (b[:-2], i), "announces 614 bytes"),
        (lambda b, i: (b, b"X" + i[1:]), "not a token index"),
        (lambda b, i: (b, i[:-8] + struct.pack("<q", 3)), "do not end"),
    ],
)
def test_a_broken_pair_is_refused(tmp_path: Path, cut, said: str) -> None:  # type: ignore[no-untyped-def]
    reference.write(tmp_path / "a", DOCUMENTS, 8)
    bin_, idx = cut((tmp_path / "a.bin").read_bytes(), (tmp_path / "a.idx").read_bytes())
    (tmp_path / "a.bin").write_bytes(bin_)
    (tmp_path / "a.idx").write_bytes(idx)
    with pytest.raises(DataError, match=said):
        indexed.Indexed(tmp_path / "a")


def test_nanotrons_index_and_metadata() -> None:
    out = io.BytesIO()
    nanoset.write_index(out, iter([3, 2, 4]))
    assert out.getvalue() == struct.pack("<3Q", 3, 5, 9)
    assert nanoset.metadata("gpt2", 2, 1_234_567) == b"gpt2|2\n1234567\n1.23 MT"
    assert nanoset.metadata("gpt2", 4, 5).endswith(b"\n5\n5.00 T")
