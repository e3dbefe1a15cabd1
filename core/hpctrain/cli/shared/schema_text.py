"""The JSON schema of the run file as this installation reads it."""

from __future__ import annotations

import json

from hpctrain.cli.out import Out
from hpctrain.errors import HpctrainError
from hpctrain.hooks import load
from hpctrain.hooks.scan import names
from hpctrain.runfile.chosen import TECHNOLOGIES


def schema_text(out: Out) -> str:
    """The schema with the tables of every installed technology; a broken plugin only lacks its table."""
    from hpctrain.runfile.schema import run_schema

    options = {}
    for table, plural in TECHNOLOGIES.items():
        for name in names(plural):
            try:
                module = load.load(load.find(plural, name))
            except HpctrainError as error:
                out.warn(error.problems)
                continue
            if hasattr(module, "Options"):
                options[table, name] = module.Options
    return json.dumps(run_schema(options), indent=2, ensure_ascii=False) + "\n"
