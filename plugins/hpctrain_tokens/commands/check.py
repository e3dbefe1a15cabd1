"""`check`: every row of chat files by the rules; or that token files are what their manifest says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hpctrain_tokens import manifest
from hpctrain_tokens.chat.check import check
from hpctrain_tokens.commands import files
from hpctrain_tokens.commands.answer import Answer, amount, natural, plural
from hpctrain_tokens.commands.prepare import add_input
from hpctrain_tokens.faults import SHOWN_FAULTS, DataError
from hpctrain_tokens.prepare import Tell, fits
from hpctrain_tokens.tokenizer import Tokenizer


def add_check(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--text-column", default="messages", help="column of messages")
    parser.add_argument(
        "--tokenizer", default="", help="folder, tokenizer.json or hub name, with --model-vocab"
    )
    parser.add_argument(
        "--model-vocab", type=natural, default=0, metavar="N", help="rows of the model's embedding"
    )


def run_check(args: argparse.Namespace, _: Tell) -> Answer:
    """Check token files or chat files; nothing is changed."""
    if args.tokenizer:
        fits(Tokenizer.at(args.tokenizer), args.model_vocab)
    prefixes = [name for entry in args.inputs for name in files.names(entry)]
    if prefixes:
        return _tokens(prefixes, args.model_vocab)
    result = check(args.inputs, args.text_column, args.subset, args.split)
    good = result.rows - result.bad
    limit_note = f" (at most {SHOWN_FAULTS} are shown)" if result.bad else ""
    lines = [f"{plural(result.rows, 'row')}: {good:,} good, {result.bad:,} bad{limit_note}"]
    values = {
        "rows": result.rows,
        "good": good,
        "bad": result.bad,
        "faults": [f.plain() for f in result.faults],
    }
    return Answer("data-check", lines, values, result.faults)


def _tokens(prefixes: list[Path], rows: int) -> Answer:
    results: list[dict[str, Any]] = []
    for prefix in prefixes:
        token_file = files.opened(prefix)
        record = manifest.read(prefix.with_name(f"{prefix.name}.manifest.json"))
        if record:
            manifest.whole(record, prefix.parent)
        largest = token_file.largest()
        if rows and largest >= rows:
            message = f"token {largest} is there, the model's vocabulary is {rows}"
            raise DataError.of("vocabulary", message, file=str(token_file.path))
        row = {
            "prefix": str(prefix),
            "documents": token_file.documents,
            "tokens": token_file.tokens,
            "largest": largest,
        }
        results.append({**row, "manifest": bool(record)})
    lines = [
        f"{r['prefix']}  {plural(r['documents'], 'document')}  {amount(r['tokens'])} tokens  "
        + ("matches its manifest" if r["manifest"] else "no manifest")
        for r in results
    ]
    return Answer("data-check", lines, {"files": results})
