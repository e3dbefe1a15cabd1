"""Bad rows: where they are, and whether the work may go on without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hpctrain_tokens.faults import SHOWN_FAULTS, DataError, Fault, some
from hpctrain_tokens.shard import Shard
from hpctrain_tokens.sources import Source

REPAIR = "repair the row, or leave it out: --on-bad skip"
SOME = "name data that has some"


class Ledger:
    """Collects the bad rows of shards in order, so that what is told never depends on the workers."""

    def __init__(self, sources: Sequence[Source], on_bad: str, most: int) -> None:
        if on_bad not in ("error", "skip"):
            raise DataError.of("data-on-bad", f'"{on_bad}" is not one of error, skip')
        self.sources, self.on_bad, self.most = sources, on_bad, most
        self.rows = dict.fromkeys(range(len(sources)), 0)
        self.faults: list[Fault] = []
        self.bad = 0

    @classmethod
    def of(cls, manifest: Mapping[str, Any], on_bad: str, most: int) -> Ledger:
        """Judge an earlier result by what is asked for now."""
        ledger = cls([], on_bad, most)
        ledger.bad = manifest["rows"]["bad"]
        ledger.faults = [Fault(**fault) for fault in manifest["bad"]]
        ledger.judge()
        return ledger

    def add(self, shard: Shard) -> None:
        """The next shard; DataError when its bad rows may not be left out."""
        name, before = self.sources[shard.source].name, self.rows[shard.source]
        self.faults += [fault.at(name, before + fault.line) for fault in shard.parsed_faults()]
        self.rows[shard.source] += shard.rows
        self.bad += shard.bad
        self.judge()

    def judge(self) -> None:
        if self.bad and self.on_bad == "error":
            listed_faults = [replace(fault, hint=fault.hint or REPAIR) for fault in some(self.faults)]
            raise DataError(listed_faults, omitted=self.bad - len(listed_faults))
        if self.bad > self.most:
            last = some(self.faults, SHOWN_FAULTS - 1)
            cap = Fault(
                code="too-many-bad",
                message=f"{self.bad} rows are bad, {self.most} may be left out",
                hint=f"--max-bad {self.bad}, if that is right",
            )
            raise DataError([*last, cap], omitted=self.bad - len(last))

    def nothing(self, name: str) -> DataError:
        """The error of a result without tokens."""
        rows = sum(self.rows.values())
        message = f"none of the {rows} rows is a document" if rows else "there are no rows"
        return DataError(
            [
                *some(self.faults, SHOWN_FAULTS - 1),
                Fault(code="no-rows", message=message, file=name, hint=SOME),
            ]
        )
