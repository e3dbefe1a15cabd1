"""Chat JSONL as Automodel and TRL read it: one `messages` list a line, checked on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain_tokens import packed, pieces, safely, sources
from hpctrain_tokens.bad_rows import Ledger
from hpctrain_tokens.chat.locate import dotted
from hpctrain_tokens.chat.rules import broken
from hpctrain_tokens.faults import Fault, RowError
from hpctrain_tokens.fields import Fields
from hpctrain_tokens.jsonrows import parse
from hpctrain_tokens.shard import Shard


def export(
    inputs: tuple[str, ...],
    target: Path,
    chosen: Fields,
    *,
    subset: str = "",
    split: str = "",
    on_bad: str = "error",
    max_bad: int = 100,
) -> dict[str, Any]:
    """Write the conversations of `inputs`; pairs of columns become a user's and an assistant's turn."""
    input_sources = sources.find(inputs, subset, split)
    ledger = Ledger(input_sources, on_bad, max_bad)
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = written = 0
    work = target.with_name(f".{target.name}.work")
    work.mkdir(exist_ok=True)
    safely.sweep(target)
    try:
        with safely.written(target) as file:
            for piece in pieces.divide(input_sources, packed.unpack(input_sources, work)):
                reading = pieces.Reading(piece)
                faults: list[Fault] = []
                for line in _lines(reading, chosen, faults):
                    file.write(line)
                    written += 1
                rows += reading.rows
                ledger.add(_shard(piece.number, piece.source, reading.rows, faults))
            if not written:
                raise ledger.nothing(input_sources[0].name)
    finally:
        for path in work.iterdir():
            path.unlink()
        work.rmdir()
    bad = [fault.plain() for fault in ledger.faults]
    return {
        "file": str(target),
        "rows": rows,
        "written": written,
        "bad": bad,
        "sha256": safely.sha256(target),
    }


def _shard(number: int, source: int, rows: int, faults: list[Fault]) -> Shard:
    plain_faults = [fault.plain() for fault in faults]
    return Shard(number, source, rows=rows, bad=len({fault.line for fault in faults}), faults=plain_faults)


def _lines(reading: pieces.Reading, chosen: Fields, faults: list[Fault]) -> Iterator[bytes]:
    for row in reading:
        try:
            turns = chosen.messages(parse(row))
        except RowError as error:
            faults.append(error.fault.at("", row.number))
            continue
        wrong = [
            Fault(f.code, f.message, line=row.number, where=dotted(f.path), hint=f.hint)
            for f in broken({"messages": turns}, "messages")
        ]
        faults += wrong
        if not wrong:
            yield (json.dumps({"messages": turns}, ensure_ascii=False) + "\n").encode()
