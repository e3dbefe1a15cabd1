"""`hpctrain schema`: the JSON schema of the run file, for editors."""

from __future__ import annotations

import json
import sys

import click

from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.hooks import load
from hpctrain.hooks.scan import names
from hpctrain.session import TECHNOLOGIES


@click.command("schema")
@click.pass_obj
def command(out: Out) -> int:
    """Print the JSON schema of the run file with the tables of every installed technology."""
    from hpctrain.runfile.schema import run_schema

    options = {}
    for table, plural in TECHNOLOGIES.items():
        for name in names(plural):
            try:
                module = load.load(load.find(plural, name))
            except HpctrainError as error:  # a broken plugin only lacks its table
                out.warn(error.problems)
                continue
            if hasattr(module, "Options"):
                options[table, name] = module.Options
    sys.stdout.write(json.dumps(run_schema(options), indent=2, ensure_ascii=False) + "\n")
    return 0
