"""`show`: the first sequence of token files as people read it, with what the files hold."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hpctrain_tokens import histogram, manifest
from hpctrain_tokens.chat.labels import MASKED
from hpctrain_tokens.commands import files
from hpctrain_tokens.commands.answer import Answer, amount, natural, plural
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.indexed import Indexed
from hpctrain_tokens.prepare import Tell
from hpctrain_tokens.tokenizer import Tokenizer


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prefix", help="name of the files without .bin, or nanotron's folder")
    parser.add_argument("--tokenizer", default="", help="folder, tokenizer.json or hub name")
    parser.add_argument("--document", type=natural, default=1, metavar="N", help="which document (1)")
    parser.add_argument("--tokens", type=natural, default=200, metavar="N", help="how much of it (200)")
    parser.add_argument("--ascii", action="store_true", help="bars of plain letters")


def run_show(args: argparse.Namespace, _: Tell) -> Answer:
    """Decode a document, and say which tokens are learnt."""
    prefix = next(iter(files.names(args.prefix)), None)
    if prefix is None:
        raise DataError.of("no-input", "there are no token files of this name", file=args.prefix)
    token_file = files.opened(prefix)
    if not 1 <= args.document <= len(token_file.sizes):
        raise DataError.of(
            "usage", f"there are {plural(len(token_file.sizes), 'sequence')}", hint="--document 1"
        )
    tokens = token_file.sequence(args.document - 1, args.tokens)
    record = manifest.read(prefix.with_name(f"{prefix.name}.manifest.json"))
    values: dict[str, Any] = {"documents": token_file.documents, "tokens": token_file.tokens, "ids": tokens}
    lines = [
        f"{plural(token_file.documents, 'document')}   {amount(token_file.tokens)} tokens",
        f"ids   {tokens}",
    ]
    if args.tokenizer:
        tokenizer = Tokenizer.at(args.tokenizer)
        if record and record["tokenizer"]["sha256"] != tokenizer.digest:
            raise DataError.of(
                "data-tokenizer", "these files were made with another tokenizer", file=str(tokenizer.path)
            )
        values["text"] = tokenizer.decode(tokens)
        lines.append(f"text  {values['text']!r}")
        lines += _labels(prefix, args, tokenizer, values)
    if record:
        lines += histogram.lines(record["lengths"], ascii=args.ascii)
    return Answer("data-show", lines, values)


def _labels(
    prefix: Path, args: argparse.Namespace, tokenizer: Tokenizer, values: dict[str, Any]
) -> list[str]:
    """What is learnt of the document, where there are labels."""
    pair = prefix.with_name(prefix.name.removesuffix("_document") + "_label_document")
    if not Path(f"{pair}.idx").is_file():
        return []
    label = Indexed(pair).sequence(args.document - 1, args.tokens)
    values["learnt"] = tokenizer.decode([number for number in label if number != MASKED])
    return [f"learnt {values['learnt']!r}"]
