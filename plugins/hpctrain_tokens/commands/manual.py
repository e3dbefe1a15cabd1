"""The two manual commands of GPT-NeoX's documents, with their options and names of files."""

from __future__ import annotations

import argparse
from typing import Any

from hpctrain_tokens.commands.answer import Answer, natural, words
from hpctrain_tokens.commands.prepare import add_bad, add_template, describe
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, Tell, prepare

HF = "HFTokenizer"


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", type=words, required=True, help="JSONL files, with commas between")
    parser.add_argument("--output-prefix", required=True, help="name of the result without its ends")
    parser.add_argument(
        "--dataset-impl", choices=("lazy", "cached", "mmap"), default="mmap", help="only mmap is made"
    )
    parser.add_argument("--workers", type=natural, default=1, help="processes")
    parser.add_argument(
        "--num-docs", type=int, default=None, help="taken for compatibility; progress needs no hint"
    )
    parser.add_argument("--log-interval", type=int, default=100, help="taken for compatibility")
    parser.add_argument("--ftfy", action="store_true", help="not offered: repair text before")
    parser.add_argument("--force", action="store_true", help="replace another result")
    add_bad(parser)


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add the options of NeoX's `preprocess_data.py`."""
    _add_shared(parser)
    parser.add_argument(
        "--jsonl-keys", nargs="+", default=["text"], help="columns, each a result of its own (text)"
    )
    parser.add_argument("--tokenizer-type", default=HF, help=f"only {HF} is offered")
    parser.add_argument("--vocab-file", "--vocab", dest="vocab_file", required=True, help="tokenizer.json")
    parser.add_argument("--merge-file", default=None, help="not needed by tokenizer.json")
    parser.add_argument("--append-eod", action="store_true", help="end each document with its token")


def add_chat(parser: argparse.ArgumentParser) -> None:
    """Add the options of NeoX's `preprocess_data_with_chat_template.py`."""
    _add_shared(parser)
    parser.add_argument("--jsonl-keys", nargs="+", default=["conversation"], help="columns (conversation)")
    parser.add_argument("--tokenizer-path", required=True, help="folder or hub name")
    add_template(parser)
    parser.add_argument("--no-mask", action="store_true", help="learn every token; no label files")
    parser.add_argument("--only-last", action="store_true", help="learn the last turn only")
    parser.add_argument("--for-rm", action="store_true", help="for a reward model: learn the last token only")
    parser.add_argument("--generation-role", default="assistant", help="whose turns are learnt (assistant)")
    parser.add_argument("--reward-key", default="", help="column of rewards")
    parser.add_argument("--binary-reward", action="store_true", help="rewards are yes or no: 1 or -1")


def run_text(args: argparse.Namespace, tell: Tell) -> Answer:
    """A column of text to `<prefix>_<key>_document`."""
    if args.tokenizer_type != HF:
        raise DataError.of(
            "usage", f"--tokenizer-type {args.tokenizer_type} is not offered", hint=f"--tokenizer-type {HF}"
        )
    shared = {"tokenizer": args.vocab_file, "append_eod": args.append_eod, "special": "keep"}
    return _prepare_each(args, shared, "data-preprocess", tell)


def run_chat(args: argparse.Namespace, tell: Tell) -> Answer:
    """Messages to `<prefix>_<key>_document`, with `<prefix>_<key>_label_document` beside it."""
    shared = {
        "tokenizer": args.tokenizer_path,
        "template": args.chat_template,
        "special": "keep",
        "mask": not args.no_mask,
        "only_last": args.only_last,
        "for_rm": args.for_rm,
        "role": args.generation_role,
        "reward": args.reward_key,
        "binary_reward": args.binary_reward,
    }
    return _prepare_each(args, shared, "data-preprocess-chat", tell)


def _prepare_each(args: argparse.Namespace, shared: dict[str, Any], name: str, tell: Tell) -> Answer:
    """Make one set of token files for each key of the rows."""
    if args.dataset_impl != "mmap":
        raise DataError.of(
            "usage", f"--dataset-impl {args.dataset_impl} is not made", hint="--dataset-impl mmap"
        )
    if args.ftfy:
        raise DataError.of("usage", "--ftfy is not offered: repair the text before, and look at what changed")
    results = []
    for key in args.jsonl_keys:
        request = Request(
            inputs=args.input,
            output=args.output_prefix,
            options=Options(column=key, **shared),
            workers=args.workers,
            on_bad=args.on_bad,
            max_bad=args.max_bad,
            force=args.force,
        )
        results.append(prepare(request, tell))
    return Answer(name, [line for result in results for line in describe(result)], {"results": results})
