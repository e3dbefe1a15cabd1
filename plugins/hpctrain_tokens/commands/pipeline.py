"""The pipeline of the Isambard document as one command: its options, defaults and names of files.

A dataset becomes `dataset.jsonl` with a `text` in each row, and that the token files; tokens are counted
while they are made. Unlike the original, a template that fails stops with the row.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpctrain_tokens import fields, hub, packed, pieces, safely, sources
from hpctrain_tokens.bad_rows import Ledger
from hpctrain_tokens.chat.labels import checked
from hpctrain_tokens.chat_template import Template
from hpctrain_tokens.commands.answer import Answer, amount, natural, plural, words
from hpctrain_tokens.commands.prepare import add_bad, add_template
from hpctrain_tokens.encoder import values
from hpctrain_tokens.faults import DataError, Fault, RowError
from hpctrain_tokens.fields import BLANK_LINE, Fields
from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, Tell, count, prepare
from hpctrain_tokens.shard import Shard
from hpctrain_tokens.tokenizer import Tokenizer

INSTRUCT = "geodesic-research/gpt-neox-instruct-tokenizer"


def add_pipeline(parser: argparse.ArgumentParser) -> None:
    """Add the options of the pipeline's `prepare_hf_dataset.py`."""
    parser.add_argument("--dataset", required=True, help="hub name, file or folder")
    parser.add_argument("--subset", default="", help="configuration")
    parser.add_argument("--split", default="train", help="split (train)")
    parser.add_argument("--output-dir", default="", help="folder of the result")
    parser.add_argument("--output-base", default="", help="folder above the result's own (the current one)")
    parser.add_argument("--text-column", default="", help="column (text, else messages)")
    parser.add_argument(
        "--join-columns", type=words, default=(), metavar="A,B", help="columns, a blank line between"
    )
    parser.add_argument("--vocab-file", "--vocab", dest="vocab_file", default="", help="tokenizer.json")
    parser.add_argument(
        "--hf-tokenizer", default=INSTRUCT, help=f"tokenizer with the chat template ({INSTRUCT})"
    )
    add_template(parser)
    parser.add_argument(
        "--midtrain-chat-messages", action="store_true", help="contents alone, roles left out"
    )
    parser.add_argument(
        "--skip-chat-template", action="store_true", help="the messages as Python writes them, no template"
    )
    parser.add_argument("--data-dir", default="", help="folder inside of the dataset")
    parser.add_argument("--data-files", type=words, default=(), metavar="A,B", help="files instead of it")
    parser.add_argument("--batch-size", type=int, default=10_000, help="taken for compatibility")
    parser.add_argument("--download-workers", type=int, default=0, help="taken for compatibility")
    parser.add_argument("--skip-count", action="store_true", help="leave the count out of the results")
    parser.add_argument("--skip-tokenize", action="store_true", help="write dataset.jsonl and count only")
    parser.add_argument("--count-only", action="store_true", help="write nothing but the results")
    parser.add_argument("--num-proc", type=natural, default=16, help="processes (16)")
    parser.add_argument(
        "--tokenize-workers", type=natural, default=0, help="processes that tokenise (as --num-proc)"
    )
    parser.add_argument("--force", action="store_true", help="replace another result")
    add_bad(parser)


def folder_name(dataset: str, subset: str, split: str) -> str:
    """The name of a result's folder: `wmdp-corpora_bio-retain-corpus_train`."""
    last = dataset.rstrip("/").rsplit("/", 1)[-1]
    return "_".join(filter(None, (last, subset, split)))


def run_pipeline(args: argparse.Namespace, tell: Tell) -> Answer:
    """Write the folder of a dataset."""
    begun = time.monotonic()
    name = folder_name(args.dataset, args.subset, args.split)
    folder = Path(args.output_dir) if args.output_dir else Path(args.output_base or ".") / name
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"dataset": args.dataset, "subset": args.subset or None, "split": args.split}
    results |= {"status": "failed", "output_dir": str(folder), "token_count": None, "tokenized": False}
    try:
        with _Rows(args, folder) as rows:
            rows.write()
            results |= rows.summary(keep=not args.count_only)
            if not (args.skip_count and args.skip_tokenize):
                results |= _tokens(args, folder, rows.target, tell)
        results["status"] = "success"
    except DataError as error:
        results["error"] = str(error)
        raise
    finally:
        results["elapsed_time"] = round(time.monotonic() - begun, 1)
        safely.write(folder / "pipeline_results.json", (json.dumps(results, indent=2) + "\n").encode())
    return Answer("data-pipeline", _lines(results), results)


def _lines(results: dict[str, Any]) -> list[str]:
    tokens = results["token_count"]
    counted = f"   {amount(tokens)} tokens" if tokens is not None else ""
    lines = [f"{plural(results['num_documents'], 'document')}{counted}   in {results['output_dir']}"]
    if results.get("bin_path"):
        lines.append(f'"train_data_paths": ["{results["bin_path"].removesuffix(".bin")}"]')
    return lines


def _tokens(args: argparse.Namespace, folder: Path, rows: Path, tell: Tell) -> dict[str, Any]:
    options = Options(tokenizer=args.vocab_file or args.hf_tokenizer, column="text", special="keep")
    workers = args.tokenize_workers or args.num_proc
    request = Request((str(rows),), str(folder / folder.name), options, workers=workers, force=args.force)
    begun = time.monotonic()
    result = (count if args.count_only or args.skip_tokenize else prepare)(request, tell)
    content_tokens = result["tokens"] - result["documents"]  # the ends of documents are not in the count
    report: dict[str, Any] = {}
    if not args.skip_count:
        report |= {
            "token_count": content_tokens,
            "tokens_per_doc": round(content_tokens / result["documents"], 1),
        }
    if "prefix" in result:
        spent = round(time.monotonic() - begun, 1)
        ends = {f"{kind}_path": f"{result['prefix']}.{kind}" for kind in ("bin", "idx")}
        report |= {"tokenized": True, "tokenize_time": spent, **ends}
    return report


def _inputs(args: argparse.Namespace) -> tuple[str, ...]:
    """What is read: files that were named, or the dataset, or a folder of it."""
    if args.data_files or not args.data_dir:
        return args.data_files or (args.dataset,)
    whole = Path(args.dataset).expanduser()
    folder = (whole if whole.is_dir() else hub.folder(args.dataset)) / args.data_dir
    if not folder.is_dir():
        raise DataError.of("no-input", f"{args.dataset} has no folder {args.data_dir}", file=str(folder))
    return (str(folder),)


class _Rows:
    """`dataset.jsonl` from whatever the dataset is."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.target = args, folder / ("." * args.count_only + "dataset.jsonl")
        self.sources = sources.find(_inputs(args), args.subset, args.split)
        self.work = folder / ".unpacked"
        self.rows = 0
        self.fields = Fields("text", ("text",))

    def __enter__(self) -> _Rows:
        self.work.mkdir(exist_ok=True)
        safely.sweep(self.target)
        return self

    def __exit__(self, *_: object) -> None:
        for path in self.work.iterdir():
            path.unlink()
        self.work.rmdir()
        if self.args.count_only:
            self.target.unlink(missing_ok=True)

    def summary(self, *, keep: bool) -> dict[str, Any]:
        chat = self.fields.kind == "messages"
        report = {"num_documents": self.rows, "text_column": self.fields.key, "is_messages": chat}
        return {**report, "jsonl_path": str(self.target) if keep else None}

    def write(self) -> None:
        """Every row as one with only `text`."""
        input_pieces = pieces.divide(self.sources, packed.unpack(self.sources, self.work))
        self.fields = fields.find(self.sources, input_pieces, self.args.text_column, self.args.join_columns)
        ledger = Ledger(self.sources, self.args.on_bad, self.args.max_bad)
        with safely.written(self.target) as file:
            for piece in input_pieces:
                faults: list[Fault] = []
                reading = pieces.Reading(piece)
                for text in self._texts(reading, faults):
                    file.write((json.dumps({"text": text}, ensure_ascii=False) + "\n").encode())
                    self.rows += 1
                plain_faults = [fault.plain() for fault in faults]
                ledger.add(
                    Shard(piece.number, piece.source, rows=reading.rows, bad=len(faults), faults=plain_faults)
                )
            if not self.rows:
                raise ledger.nothing(self.sources[0].name)

    def _texts(self, reading: pieces.Reading, faults: list[Fault]) -> Iterator[str]:
        template = None
        as_they_are = self.args.midtrain_chat_messages or self.args.skip_chat_template
        if self.fields.kind == "messages" and not as_they_are:
            template = Template.of(Tokenizer.at(self.args.hf_tokenizer), self.args.chat_template)
        for row in reading:
            try:
                yield self._text(values(row, reading.piece.kind), template)
            except RowError as error:  # noqa: PERF203  (each row has its own fate)
                faults.append(error.fault.at("", row.number))

    def _text(self, row: dict[str, Any], template: Template | None) -> str:
        if self.fields.kind != "messages":
            return self.fields.text(row)
        turns = checked(self.fields.messages(row))
        if self.args.skip_chat_template and not self.args.midtrain_chat_messages:
            return str(turns)
        if template is not None:
            return template.render(turns)
        return BLANK_LINE.join(str(turn["content"]) for turn in turns)
