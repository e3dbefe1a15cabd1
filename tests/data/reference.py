"""What the trainers' own scripts write, said again in the plainest way: one row, one list, no shards."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

CODES = {8: ("H", 2), 4: ("i", 4)}


def write(prefix: Path, documents: list[list[int]], code: int) -> None:
    """A `.bin` and its `.idx`; an empty list is a document without a sequence."""
    letter, width = CODES[code]
    sequences = [d for d in documents if d]
    flat = [token for d in sequences for token in d]
    Path(f"{prefix}.bin").write_bytes(struct.pack(f"<{len(flat)}{letter}", *flat))
    ends, offsets, at, count = [0], [], 0, 0
    for d in documents:
        if d:
            offsets.append(at)
            at += len(d) * width
            count += 1
        ends.append(count)
    sizes = [len(d) for d in sequences]
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(sizes), len(ends))
    index += struct.pack(f"<{len(sizes)}i", *sizes) + struct.pack(f"<{len(offsets)}q", *offsets)
    Path(f"{prefix}.idx").write_bytes(index + struct.pack(f"<{len(ends)}q", *ends))


def read(prefix: Path) -> list[list[int]]:
    """The documents of a pair, by the table of the format alone."""
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, ends = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    letter, width = CODES[code]
    sizes = struct.unpack_from(f"<{sequences}i", index, 34)
    offsets = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
    documents = struct.unpack_from(f"<{ends}q", index, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * ends
    tokens = Path(f"{prefix}.bin").read_bytes()
    rows = [list(struct.unpack_from(f"<{n}{letter}", tokens, o)) for n, o in zip(sizes, offsets, strict=True)]
    assert sum(sizes) * width == len(tokens)
    return [[token for row in rows[a:b] for token in row] for a, b in pairwise(documents)]


def tokens(
    tokenizer: Path, texts: list[str], compat: str = "neox", end: str = "<|endoftext|>"
) -> list[list[int]]:
    """Each text by itself, the way both trainers do it; GPT-NeoX leaves out what is empty, and Megatron puts
    an end behind what is not: a token that begins every text makes one of an empty text, too."""
    from tokenizers import Tokenizer

    engine = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    last: list[Any] = [engine.token_to_id(end)] if end else []
    made = [engine.encode(text).ids for text in texts if text or compat != "neox"]
    return [row + last if row else [] for row in made]


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def same(left: Path, right: Path) -> bool:
    """Whether two pairs are the same bytes."""
    return all(Path(f"{left}{e}").read_bytes() == Path(f"{right}{e}").read_bytes() for e in (".bin", ".idx"))
