"""Run by a page's own Python: whether each command line on standard input is one of this installation.

The command must exist with these options and arguments; nothing is carried out.
"""

from __future__ import annotations

import contextlib
import json
import sys

import click

from hpctrain.cli.app import Commands
from hpctrain.cli.flags import split


def parse(words: list[str]) -> None:
    """Take one command line to pieces, `hpctrain` left out."""
    _, words = split(words)
    group = Commands("hpctrain")
    context = click.Context(group)
    name, command, arguments = group.resolve_command(context, words)
    assert command is not None
    if name == "data":
        from hpctrain_tokens.commands.parser import parser

        parser("hpctrain data").parse_args(arguments)
    with contextlib.suppress(click.exceptions.Exit):  # of --help
        command.make_context(name, arguments, parent=context)


for line in json.load(sys.stdin):
    try:
        parse(line)
    except (Exception, SystemExit) as error:  # noqa: PERF203  (the line belongs into the message)
        sys.exit(f"{' '.join(line)}: {type(error).__name__}: {error}")
