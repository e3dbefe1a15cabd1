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
from hpctrain_tokens.faults import SHOWN, DataError
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
    """Look, and change nothing."""
    if args.tokenizer:
        fits(Tokenizer.at(args.tokenizer), args.model_vocab)
    prefixes = [name for given in args.inputs for name in files.names(given)]
    if prefixes:
        return _tokens(prefixes, args.model_vocab)
    found = check(args.inputs, args.text_column, args.subset, args.split)
    good = found.rows - found.bad
    shown = f" (at most {SHOWN} are shown)" if found.bad else ""
    lines = [f"{plural(found.rows, 'row')}: {good:,} good, {found.bad:,} bad{shown}"]
    values = {"rows": found.rows, "good": good, "bad": found.bad, "faults": [f.plain() for f in found.faults]}
    return Answer("data-check", lines, values, found.faults)


def _tokens(prefixes: list[Path], rows: int) -> Answer:
    found: list[dict[str, Any]] = []
    for prefix in prefixes:
        held = files.opened(prefix)
        there = manifest.read(prefix.with_name(f"{prefix.name}.manifest.json"))
        if there:
            manifest.whole(there, prefix.parent)
        largest = held.largest()
        if rows and largest >= rows:
            said = f"token {largest} is there, the model's vocabulary is {rows}"
            raise DataError.of("vocabulary", said, file=str(held.path))
        row = {"prefix": str(prefix), "documents": held.documents, "tokens": held.tokens, "largest": largest}
        found.append({**row, "manifest": bool(there)})
    lines = [
        f"{r['prefix']}  {plural(r['documents'], 'document')}  {amount(r['tokens'])} tokens  "
        + ("as its manifest says" if r["manifest"] else "no manifest")
        for r in found
    ]
    return Answer("data-check", lines, {"files": found})
