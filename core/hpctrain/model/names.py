"""What may be a name: of a run, a step, an asset, and of a variable; and the files of a plan."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
PLAN = "plan.json"
"""Every run directory has it: what tells one from any other folder."""
GRAPH = "graph.json"
"""The file of its steps and their order."""
NAME_RULE = "a name: at most 64 letters, digits, '.', '_' or '-', the first a letter or digit"


def is_name(text: str) -> bool:
    """Whether `text` may name a run, a cluster, a step: it becomes part of paths and scripts."""
    return bool(_NAME.match(text)) and ".." not in text


def is_account(text: str) -> bool:
    """Whether jobs may be charged to `text`: it becomes part of paths and of the scheduler's words."""
    return bool(_ACCOUNT.match(text))


def is_variable(text: str) -> bool:
    """Whether a shell takes `text` as the name of a variable."""
    return bool(_VARIABLE.match(text))
