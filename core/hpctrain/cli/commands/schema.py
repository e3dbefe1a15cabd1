"""`hpctrain schema`: the JSON schema of the run file, for editors."""

from __future__ import annotations

import sys

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.schema_text import schema_text


@click.command("schema")
@click.pass_obj
def command(out: Out) -> int:
    """Print the JSON schema of the run file with the tables of every installed technology."""
    sys.stdout.write(schema_text(out))
    return 0
