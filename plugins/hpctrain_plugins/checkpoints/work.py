"""What a conversion does once it is planned: copy, describe, read again, compare."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints import record, registry
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.copying.disks import is_local
from hpctrain_plugins.checkpoints.copying.engine import Copy, Pair, Progress, compare, run, uncertain
from hpctrain_plugins.checkpoints.copying.publishing import sync
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.copying.writeback import Writeback
from hpctrain_plugins.checkpoints.crew import Crew
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model


@attrs.frozen
class Work:
    """A planned conversion into a private `folder`, of which each of the crew does a share."""

    folder: Path
    model: Model
    output: Output
    options: ConvertOptions
    report: Report
    crew: Crew

    def done(self, progress: Progress | None) -> Report:
        """Carry it out; the report is whole where the crew's leader is, as is `conversion.json`."""
        crcs, checked = self._copied(progress)
        rows = record.mapping(self.output, self.report.source, [c for file in crcs for c in file])
        report = attrs.evolve(self.report, bytes_checked=checked, mapping=rows)
        if self.crew.leads:
            self._describe(report)
        self.crew.meet("described")
        if self.options.verify != "none":
            again = self._compared(crcs)
            compared = sum(t.nbytes for t in again.tensors.values())
            report = attrs.evolve(report, verified=self.options.verify, bytes_compared=compared)
            if self.options.verify == "logits" and self.crew.leads:
                report = attrs.evolve(report, logits=self._logits(again, report))
        self.crew.finish()
        return report

    @property
    def _moved(self) -> bool:
        return self.report.exactness == "exact"

    @property
    def _direct(self) -> bool:
        """Whether bytes pass the page cache by."""
        return self._moved and self.options.fsync and is_local(self.folder)

    def _copied(self, progress: Progress | None) -> tuple[list[list[int]], int]:
        """Write the tensors; the checksums of each file's parts, and how much of the source was checked."""
        share = self.crew.share([file.size for file in self.output.files])
        ledger = Ledger(self.model.crcs)
        replicas = [Pair(a, b, "ranks that must hold the same") for a, b in self.model.replicas]
        with Writeback() if self.options.fsync else nullcontext() as writeback:
            files = [self.output.files[number] for number in share]
            copy = Copy(self.folder, files, progress, writeback, direct=self._direct)
            copy.allocate()
            run(compare(replicas[self.crew.rank :: self.crew.count]), ledger, self.options.workers())
            run(copy.tasks(), ledger, self.options.workers(cached=self._moved and not self._direct))
        checked = ledger.check()
        my_crcs = copy.seal()
        if self.options.fsync and not self.crew.leads:  # the leader's fsync is of what its node has written
            for file in files:
                sync(self.folder / file.name)
        shares = self.crew.meet("copied", (list(zip(share, my_crcs, strict=True)), checked))
        crcs = {number: file_crcs for pairs, _ in shares for number, file_crcs in pairs}
        noted = sum(entry.size for entries in self.model.crcs.values() for entry in entries)
        return [crcs[number] for number in sorted(crcs)], min(noted, sum(size for _, size in shares))

    def _describe(self, report: Report) -> None:
        """Everything but tensors: configuration, tokenizer, record."""
        for name, path in self.output.copies.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self.folder / name)
        for name, text in self.output.texts.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(text)
        record.write(self.folder, report, self.options)

    def _compared(self, crcs: list[list[int]]) -> Model:
        """Read the written files as anybody would and compare every tensor with the source."""
        again = registry.load(self.report.target_format).read(self.folder, _plainly(self.options))
        lost = sorted(set(self.model.tensors) ^ set(again.tensors))
        if lost:
            message = f"{lost[0]} is not the same set of tensors"
            raise IntegrityError.of("checkpoint-roundtrip", message, where=lost[0])
        pairs = [Pair(a, b, "ranks of what was written") for a, b in again.replicas]
        for name, left in self.model.tensors.items():
            right = again.tensors[name]
            if right.dtype != target_dtype(left, self.options.target_dtype):
                message = f"{name} was written as {right.dtype}"
                raise IntegrityError.of("checkpoint-roundtrip", message, where=name)
            pairs.append(Pair(left, right, "the source and what was written"))
        my_pairs = [pairs[number] for number in self.crew.share([pair.right.nbytes for pair in pairs])]
        files = {self.folder / file.name: file for file in self.output.files}
        left_open = uncertain(files, dict(zip(files, crcs, strict=True)), again.crcs)
        ledger = Ledger(left_open)  # the source was checked when it was copied
        run(
            compare(my_pairs),
            ledger,
            self.options.workers(),
            frozenset(files) if self._direct else frozenset(),
        )
        ledger.check()
        return again

    def _logits(self, again: Model, report: Report) -> dict[str, Any]:
        from hpctrain_plugins.checkpoints.logits.compare import Side, compare  # few compare logits

        source = Side(report.source, report.source_format, self.model, self.options)
        target = Side(self.folder, report.target_format, again, _plainly(self.options))
        return compare(source, target, report.exactness)


def _plainly(options: ConvertOptions) -> ConvertOptions:
    """The options with which a written checkpoint is read again: none that are about its source."""
    return attrs.evolve(options, tag="", base=None, config=None, tokenizer=None, masters=False)
