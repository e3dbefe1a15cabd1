"""Words as people read them in tables: never used to run anything."""

from __future__ import annotations

from hpctrain.model.layer import EnvVar
from hpctrain.model.plan import Plan
from hpctrain.model.words import Cmd, Join, Line, Loc, Raw, Secret, Var, Word
from hpctrain.plan.around import RUN_FILE


def word_text(word: Word) -> str:
    """`$VAR`, `$role/path`, `(secret name)`; plain text as it is."""
    if isinstance(word, str):
        return word
    if isinstance(word, Var):
        return f"${word.name}"
    if isinstance(word, Loc):
        return f"${word.role}/{word.path}".rstrip("/")
    if isinstance(word, Secret):
        return f"(secret {word.name})"
    if isinstance(word, Raw):
        return word.text
    assert isinstance(word, Join)
    return "".join(map(word_text, word.parts))


def line(value: Line) -> str:
    """A command as one readable line."""
    return value.text if isinstance(value, Raw) else command(value)


def command(cmd: Cmd) -> str:
    """A command's words with spaces between them."""
    return " ".join(map(word_text, cmd.argv))


def set_by(plan: Plan, var: EnvVar) -> str:
    """Who set a variable; for the user's own the place where it stands: `run.toml:38`."""
    origin = plan.origins.get(f"env.{var.name}") if var.source == RUN_FILE else None
    return origin.label if origin else var.source
