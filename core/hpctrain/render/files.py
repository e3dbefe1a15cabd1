"""Generated files: their literal parts as they are, their words quoted for the file's format.

A file with a word that only the job knows (`${USER}` in a path, when the scripts are written for
another machine) is written by the job itself.
"""

from __future__ import annotations

import json

from hpctrain.model.layer import File, Quote
from hpctrain.model.plan import Binding
from hpctrain.model.words import Raw, Var, Word, words_in
from hpctrain.render import shell


def is_late(file: File, binding: Binding) -> bool:
    """Whether only the job can write this file."""
    leaves = (leaf for part in file.body for leaf in words_in(part))
    return any(isinstance(w, (Var, Raw)) for leaf in leaves for w in words_in(shell.opened(leaf, binding)))


def text(file: File, binding: Binding) -> str:
    """The content of a generated file."""
    return "".join(_part(part, file.quote, binding) for part in file.body)


def written_by_job(path: str, file: File, binding: Binding) -> list[str]:
    """Lines of bash that write the file where its words are known."""
    lines = ["{"]
    for part in file.body:
        if isinstance(part, str):
            lines.append(f"  printf %s {shell.quoted(part)}")
        else:
            quote = "printf %s" if file.quote in (Quote.NONE, Quote.ENV) else "hpc_json"
            lines.append(f"  {quote} {shell.word(part, binding)}")
    return [*lines, f"}} >{shell.quoted(path)}"]


def _part(part: Word, quote: Quote, binding: Binding) -> str:
    if isinstance(part, str):
        return part
    value = shell.plain(part, binding)
    # JSON's string form is also legal in YAML and, for the characters paths have, in TOML.
    return json.dumps(value) if quote in (Quote.JSON, Quote.YAML, Quote.TOML) else value
