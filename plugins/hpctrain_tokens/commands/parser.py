"""All commands with their arguments."""

from __future__ import annotations

from hpctrain_tokens.commands import check, manual, mix, pipeline, prepare, show
from hpctrain_tokens.commands.answer import Parser

COMMANDS = {
    "prepare": (prepare.add_prepare, prepare.run_prepare, "data to a trainer's token files or chat JSONL"),
    "count": (prepare.add_count, prepare.run_count, "documents, tokens and lengths, without files"),
    "check": (check.add_check, check.run_check, "what is wrong with chat files, or with token files"),
    "show": (show.add_show, show.run_show, "a document of token files, decoded"),
    "mix": (mix.add_mix, mix.run_mix, "weights of several sets for a trainer's configuration"),
    "prepare_hf_dataset": (pipeline.add_pipeline, pipeline.run_pipeline, "the Isambard document's pipeline"),
    "preprocess_data": (manual.add_text, manual.run_text, "GPT-NeoX's command for text"),
    "preprocess_data_with_chat_template": (manual.add_chat, manual.run_chat, "GPT-NeoX's command for chat"),
}


def parser(prog: str, command: str = "") -> Parser:
    """The parser of all commands, or of one."""
    if command:
        add, run, line = COMMANDS[command]
        subparser = Parser(prog=f"{prog} {command}", description=line)
        add(subparser)
        subparser.set_defaults(run=run)
        return subparser
    whole = Parser(prog=prog, description="from a dataset to the files a trainer reads")
    below = whole.add_subparsers(required=True, metavar="COMMAND")
    for name, (add, run, line) in COMMANDS.items():
        subparser = below.add_parser(name, help=line, description=line)
        add(subparser)
        subparser.set_defaults(run=run)
    return whole
