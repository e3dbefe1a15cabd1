"""`prepare` and `count`: data to a trainer's files, and what they would hold."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hpctrain_tokens import histogram, safely
from hpctrain_tokens.chat_export import export
from hpctrain_tokens.commands.answer import Answer, amount, natural, plural, size, words
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.fields import Fields
from hpctrain_tokens.options import COMPAT, Options
from hpctrain_tokens.prepare import Request, Tell, count, prepare


def add_input(parser: argparse.ArgumentParser) -> None:
    """The options that say where the data is."""
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="file, folder or hub name, each with :SPLIT"
    )
    parser.add_argument("--subset", default="", help="configuration of a hub dataset")
    parser.add_argument("--split", default="", help="train, test …")
    parser.add_argument("--revision", default="", help="commit of a hub dataset")


def add_bad(parser: argparse.ArgumentParser) -> None:
    """The options that say what happens to bad rows."""
    parser.add_argument(
        "--on-bad", choices=("error", "skip"), default="error", help="what to do with bad rows"
    )
    parser.add_argument("--skip-bad", dest="on_bad", action="store_const", const="skip", help="--on-bad skip")
    parser.add_argument("--max-bad", type=natural, default=100, help="most rows to leave out (100)")


def add_template(parser: argparse.ArgumentParser) -> None:
    """The option for a template that does not lie beside its tokenizer."""
    parser.add_argument(
        "--chat-template", default="", metavar="FILE", help="Jinja file instead of the tokenizer's"
    )


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """The options that decide the tokens."""
    parser.add_argument("--tokenizer", default="", help="folder, tokenizer.json or hub name")
    parser.add_argument("--compat", choices=COMPAT, default="neox", help="whose files and rules (neox)")
    parser.add_argument("--text-column", default="", help="column of text or messages (text, else messages)")
    parser.add_argument(
        "--join-columns", type=words, default=(), metavar="A,B", help="columns, a blank line between"
    )
    parser.add_argument("--pair", type=words, default=(), metavar="A,B", help="columns that ask and answer")
    parser.add_argument("--eod", default="", metavar="TOKEN", help="token that ends a document")
    parser.add_argument("--no-eod", action="store_true", help="put no token behind a document")
    parser.add_argument(
        "--special",
        choices=("error", "keep", "text"),
        default="error",
        help="the end's text inside a row is an error, kept as the token, or read as text",
    )
    parser.add_argument(
        "--chat",
        choices=("labels", "text", "plain"),
        default="labels",
        help="messages become tokens with labels, text by the template, or their plain contents",
    )
    add_template(parser)
    parser.add_argument("--only-last", action="store_true", help="learn the last turn only")
    parser.add_argument("--for-rm", action="store_true", help="for a reward model: learn the last token only")
    parser.add_argument("--reward-key", default="", help="column of rewards, written beside the tokens")
    parser.add_argument("--binary-reward", action="store_true", help="rewards are yes or no: 1 or -1")
    parser.add_argument(
        "--model-vocab", type=natural, default=0, metavar="N", help="rows of the model's embedding"
    )
    parser.add_argument("--engine", choices=("reference", "fast"), default="reference", help="who tokenises")
    parser.add_argument("--workers", type=natural, default=1, help="processes, 0: all cores (1)")


def add_prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--output-prefix", required=True, help="name of the result without its ends")
    parser.add_argument("--to", choices=("tokens", "chat-jsonl"), default="tokens", help="what is made")
    parser.add_argument("--work", default="", metavar="FOLDER", help="folder for unfinished work")
    parser.add_argument("--force", action="store_true", help="replace another result")
    add_tokens(parser)
    add_bad(parser)


def add_count(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--ascii", action="store_true", help="bars of plain letters")
    parser.add_argument("--picture", default="", metavar="FILE", help="the histogram as SVG")
    add_tokens(parser)
    add_bad(parser)


def asked_of(args: argparse.Namespace, output: str) -> Request:
    """The request that the arguments of a command make."""
    if not args.tokenizer:
        raise DataError.of("usage", "a tokenizer is needed", hint="--tokenizer FOLDER")
    if args.pair and len(args.pair) != 2:
        raise DataError.of("usage", "--pair needs two columns", hint="--pair prompt,completion")
    options = Options(
        tokenizer=args.tokenizer,
        compat=args.compat,
        column=args.text_column or (args.pair[0] if args.pair else ""),
        join=args.join_columns,
        pair=args.pair,
        eod=args.eod,
        append_eod=not args.no_eod,
        special=args.special,
        engine=args.engine,
        chat=args.chat,
        template=args.chat_template,
        only_last=args.only_last,
        for_rm=args.for_rm,
        reward=args.reward_key,
        binary_reward=args.binary_reward,
    )
    return Request(
        inputs=tuple(args.inputs),
        output=output,
        options=options,
        subset=args.subset,
        split=args.split,
        revision=args.revision,
        workers=args.workers,
        work=getattr(args, "work", ""),
        on_bad=args.on_bad,
        max_bad=args.max_bad,
        force=getattr(args, "force", False),
        model_vocabulary=args.model_vocab,
    )


def run_prepare(args: argparse.Namespace, tell: Tell) -> Answer:
    """Make the token files, or the chat file, that the arguments ask for."""
    if args.to == "chat-jsonl":
        return _chat_jsonl(args)
    result = prepare(asked_of(args, args.output_prefix), tell)
    return Answer("data-prepare", describe(result), result, next=f"hpctrain data show {result['prefix']}")


def _chat_jsonl(args: argparse.Namespace) -> Answer:
    chosen = Fields("pair", args.pair) if args.pair else Fields("messages", (args.text_column or "messages",))
    target = Path(args.output_prefix)
    target = target if target.suffix == ".jsonl" else target.with_name(f"{target.name}.jsonl")
    result = export(
        tuple(args.inputs),
        target,
        chosen,
        subset=args.subset,
        split=args.split,
        on_bad=args.on_bad,
        max_bad=args.max_bad,
    )
    skipped = f"; skipped {plural(len(result['bad']), 'row')}" if result["bad"] else ""
    return Answer(
        "data-prepare", [f"wrote {target}  {plural(result['written'], 'conversation')}{skipped}"], result
    )


def run_count(args: argparse.Namespace, tell: Tell) -> Answer:
    """Count the documents and tokens of a dataset, by length."""
    result = count(asked_of(args, ""), tell)
    if args.picture:
        drawn = histogram.picture(result["lengths"], f"{amount(result['tokens'])} tokens")
        safely.write(Path(args.picture), drawn.encode())
    lines = [_counts(result), *histogram.lines(result["lengths"], ascii=args.ascii)]
    return Answer("data-count", [*lines, *_notes(result)], result)


def describe(result: dict[str, Any]) -> list[str]:
    """The lines that describe a result to people: counts, notes, files."""
    files = ", ".join(f"{name} {size(row['bytes'])}" for name, row in result["files"].items())
    folder = Path(result["prefix"]).parent
    verb = "exists" if result.get("reused") else "wrote "
    return [_counts(result), *_notes(result), f"{verb} {folder / files}"]


def _counts(result: dict[str, Any]) -> str:
    learnt = f", {amount(result['learnt'])} learnt" if "learnt" in result else ""
    longest = f"longest {result['longest']:,}"
    return (
        f"{plural(result['documents'], 'document')}   {amount(result['tokens'])} tokens{learnt}   {longest}"
    )


def _notes(result: dict[str, Any]) -> list[str]:
    rows, notes = result["rows"], []
    if rows["bad"]:
        first = result["bad"][0]
        where = f"{first['file']}:{first['line']}"
        suffix = "; all of them in the manifest" if rows["bad"] > 1 else ""
        notes.append(f"skipped {plural(rows['bad'], 'row')}, first {where} {first['message']}{suffix}")
    if rows["empty"]:
        notes.append(f"{plural(rows['empty'], 'row')} without text")
    if rows["ends_inside"] and result["options"]["special"] == "keep":
        notes.append(f"{plural(rows['ends_inside'], 'row')} with the end of a document inside")
    notes += [f"not the fast engine: {why}" for why in result["not_fast"]]
    return notes
