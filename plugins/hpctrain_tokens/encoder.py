"""Rows to streams of tokens: in batches for text, one by one for conversations."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hpctrain_tokens import widths
from hpctrain_tokens.blocks import Block, Rule, block
from hpctrain_tokens.chat import locate
from hpctrain_tokens.chat.labels import MASKED, Labeller, checked
from hpctrain_tokens.chat_template import Template
from hpctrain_tokens.fast import NAME, Fast
from hpctrain_tokens.faults import Fault, RowError
from hpctrain_tokens.fields import BLANK_LINE, encodable
from hpctrain_tokens.jsonrows import decoded, parse, plain
from hpctrain_tokens.options import Work
from hpctrain_tokens.pieces import Lines, Reading, Row
from hpctrain_tokens.tokenizer import Tokenizer

BATCH = (256, 1 << 20)
"""A batch is at most so many rows or so much text: the reference needs many times its size."""

KEPT_FAULTS = 1000
"""So many faults of a piece are kept one by one; beyond, they are counted."""

TURNS = "conversations with labels are made turn by turn, by the reference"

Blocks = dict[str, Block]


class Encoder:
    """One worker's tokenizer with what is counted on the way."""

    def __init__(self, work: Work, tokenizer: Tokenizer) -> None:
        self.work = work
        self.tokenizer = tokenizer
        self.faults: list[Fault] = []
        self.empty = self.ends_inside = self.learnt = self.bad = 0
        self.fast, self.why_not = (None, "")
        if work.options.engine == "fast":
            self.fast, self.why_not = (None, TURNS) if work.labelled else Fast.of(self.tokenizer)
        self._now: Fast | None = None
        chat = work.fields.kind in ("messages", "pair")
        self._labeller = Labeller(work, self.tokenizer) if work.labelled else None
        rendered = chat and not work.labelled and work.options.chat == "text"
        self._template = Template.of(self.tokenizer, work.options.template) if rendered else None
        self._bare = work.options.compat == "nanotron"
        self._rule = self._ruled()

    @property
    def engine(self) -> str:
        """Who made the numbers of this shard."""
        return NAME if self._now is not None else self.tokenizer.version

    def _ruled(self) -> Rule:
        options, end = self.work.options, self.work.end
        nothing = next(self.tokenizer.encode([""], "q", bare=self._bare))
        usual = 0 if end is None else nothing.count(end)
        return Rule(self.work.code, end, usual, options.special == "error", options.compat == "megatron")

    def begin(self, *, fast: bool) -> None:
        """Forget what was counted; a new shard begins."""
        self.faults, self.empty, self.ends_inside, self.learnt, self.bad = [], 0, 0, 0, 0
        self._now = self.fast if fast else None
        if self._now is not None:
            self._now.samples = self._now.reference_parts = 0

    def documents(self, reading: Reading) -> Iterator[Blocks]:
        """The documents by stream, some at a time; what is wrong with a row goes to `faults`."""
        kind = reading.piece.kind
        if self._labeller is not None:
            yield from self._conversations(reading, kind)
            return
        for rows in reading.parts():
            texts = self._plain(rows, kind)
            if texts is None:
                yield from self._judged(rows, kind)
            else:
                assert isinstance(rows, Lines)
                yield {"tokens": self._batch(range(rows.before + 1, rows.before + 1 + len(texts)), texts)}

    def _plain(self, rows: Iterable[Row], kind: str) -> list[str] | None:
        """The texts of rows that are all as they should be, for the engine that needs no small batches."""
        fields = self.work.fields
        if self._now is None or kind != "jsonl" or fields.kind != "text" or not isinstance(rows, Lines):
            return None
        return plain(rows, fields.names[0])

    def _judged(self, rows: Iterable[Row], kind: str) -> Iterator[Blocks]:
        """The documents of rows that are checked one by one; the faults are kept."""
        numbers: list[int] = []
        texts: list[str] = []
        size = 0
        most, letters = BATCH
        for row in rows:
            text = self._guarded(row, kind)
            if text is None:
                continue
            if len(texts) >= most or (texts and size + len(text) > letters):
                yield {"tokens": self._batch(numbers, texts)}
                numbers, texts, size = [], [], 0
            numbers.append(row.number)
            texts.append(text)
            size += len(text)
        if texts:
            yield {"tokens": self._batch(numbers, texts)}

    def _guarded(self, row: Row, kind: str) -> str | None:
        try:
            return self._text(values(row, kind))
        except RowError as error:
            self._refuse(error, row)
            return None

    def _refuse(self, error: RowError, row: Row) -> None:
        self.bad += 1
        if len(self.faults) < KEPT_FAULTS:  # a file may be nothing else, and where each is takes its time
            self.faults.append(placed(error.fault, row))

    def _text(self, row: dict[str, Any]) -> str:
        fields = self.work.fields
        if fields.kind in ("text", "join"):
            return fields.text(row)
        turns = checked(fields.messages(row))
        if self._template is not None:
            return encodable(self._template.render(turns), fields.key)
        return BLANK_LINE.join(str(turn["content"]) for turn in turns)

    def _conversations(self, rows: Iterable[Row], kind: str) -> Iterator[Blocks]:
        assert self._labeller is not None
        for row in rows:
            try:
                streams = self._labeller.streams(values(row, kind))
            except RowError as error:
                self._refuse(error, row)
                continue
            label = streams.get("label")
            if label is not None:
                self.learnt += len(label) - label.count(MASKED)
            yield {name: Block(widths.little(s), array("i", [len(s)])) for name, s in streams.items()}

    def _batch(self, numbers: Sequence[int], texts: list[str]) -> Block:
        encoded = self._block(texts)
        self.empty += encoded.empty
        self.ends_inside += len(encoded.inside)
        if self._rule.refuse:
            self.bad += len(encoded.inside)
            room = max(0, KEPT_FAULTS - len(self.faults))
            self.faults += [self._injected(numbers[i]) for i in encoded.inside[:room]]
        return encoded

    def _block(self, texts: list[str]) -> Block:
        if self._now is not None:
            return self._now.block(texts, self._rule)
        code, every = self.work.code, self._rule.empty  # an empty text has what stands before every text
        full = self.tokenizer.encode([text for text in texts if text or every], code, bare=self._bare)
        return block((next(full) if text or every else array(code) for text in texts), self._rule)

    def _injected(self, number: int) -> Fault:
        assert self.work.end is not None
        token = self.tokenizer.decode([self.work.end])
        return Fault(
            code="eod-inside",
            message=f"the text holds {token}, which would end the document there",
            line=number,
            where=self.work.fields.key,
            letters=token,
            hint="--special text reads it as letters, --special keep as the token",
        )


def placed(fault: Fault, row: Row) -> Fault:
    """A fault of a row, with the column of the value where it names one."""
    if fault.where and row.raw is not None:
        column, end = locate.span(row.raw.decode("utf-8"), (fault.where,))
        fault = replace(fault, column=column, end=end)
    return fault.at("", row.number)


def values(row: Row, kind: str) -> dict[str, Any]:
    """The values of a row; a line of a text file is a row with only `text`."""
    if kind == "text" and row.raw is not None:
        return {"text": decoded(row.raw)}
    return parse(row)
