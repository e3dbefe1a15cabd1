"""The only quoting in the project: words become bash text, and nothing can break out of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import EnvVar, How, Module
from hpctrain.model.names import is_variable
from hpctrain.model.plan import Binding
from hpctrain.model.words import Cmd, Join, Line, Loc, Raw, Secret, Var, Word, words_in

_MEND = dict.fromkeys(("HPC_ACCOUNT", "HPC_PROJECT"), "--account NAME      (or `account` in settings)")
"""What makes a variable known before the job; else the role that holds it must be said."""


def root(role: str, binding: Binding) -> Word:
    """Where a storage role lies for this user."""
    if role not in binding.roots:
        role_names = " ".join(sorted(binding.roots))
        raise ConfigError.of(
            "role", f'no storage role "{role}" on this cluster', notes=(f"roles: {role_names}",)
        )
    return binding.roots[role]


def opened(word: Word, binding: Binding) -> Word:
    """A Loc as its root and path, the account as its name where it is known; other words as they are."""
    if isinstance(word, Var):
        return {"HPC_ACCOUNT": binding.account, "HPC_PROJECT": binding.project}.get(word.name) or word
    if not isinstance(word, Loc):
        return word
    base = root(word.role, binding)
    return Join(base, f"/{word.path}") if word.path else base


def owners(cluster: Cluster, role: str, binding: Binding) -> tuple[str, ...]:
    """The users besides this one whose artifacts of a role are used.

    They are as the rule of trust takes them; of an account that nobody named there are none.
    """
    owner_words = cluster.owners_of(role)
    bound_words = (
        w for w in owner_words if all(isinstance(opened(part, binding), str) for part in words_in(w))
    )
    return tuple(plain(word, binding) for word in bound_words)


def quoted(text: str) -> str:
    """Plain text as one bash word; a NUL cannot be in one."""
    if "\0" in text:
        raise ConfigError.of("control-character", "a NUL character cannot be part of a command")
    return shlex.quote(text)


def name(text: str) -> str:
    """A variable's name, or an error: names are never quoted, so they must be clean."""
    if not is_variable(text):
        raise ConfigError.of("variable-name", f"{text!r} cannot be the name of a variable")
    return text


def word(value: Word, binding: Binding) -> str:
    """One word as bash text."""
    value = opened(value, binding)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Var):
        return f'"${{{name(value.name)}}}"'
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Join):
        return "".join(word(part, binding) for part in value.parts if part != "") or "''"
    if isinstance(value, Secret):
        raise ConfigError.of("secret", f"the secret {value.name} may only be a variable's value")
    raise TypeError(f"not a word: {value!r}")


def words(values: tuple[Word, ...], binding: Binding) -> str:
    """Several words with spaces between them."""
    return " ".join(word(value, binding) for value in values)


def command(cmd: Cmd, binding: Binding) -> str:
    """One command as one line of bash."""
    text = words(cmd.argv, binding)
    if cmd.stdout is not None:
        text += f" > {word(cmd.stdout, binding)}"
    return text if cmd.cwd is None else f"( cd {word(cmd.cwd, binding)} && {text} )"


def line(value: Line, binding: Binding) -> str:
    """A line of a script: a command, or text that its author quoted."""
    return value.text if isinstance(value, Raw) else command(value, binding)


def comment(text: str) -> str:
    """Text that can stand behind a `#`: one line, no control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def variable(var: EnvVar, binding: Binding) -> str:
    """One variable as a line, with who set it and why."""
    key = name(var.name)
    note = f"  # {comment(f'{var.source}: {var.why}')}"
    if var.how is How.UNSET:
        return f"unset {key}{note}"
    if isinstance(var.value, Secret):
        file = quoted(var.value.name)
        return f'{key}=$(<"$HPC_SECRETS"/{file}); export {key}{note}'
    value = word(var.value, binding)
    if var.how is How.PREPEND:
        return f'export {key}={value}"${{{key}:+:${key}}}"{note}'
    setting = f"export {key}={value}"
    return f"[[ -v {key} ]] || {setting}{note}" if var.how is How.DEFAULT else setting + note


def module(entry: Module) -> str:
    """One line of the module system, through the helper that survives `set -u`."""
    return f"hpc_module {entry.action} {quoted(entry.name)}" if entry.name else f"hpc_module {entry.action}"


def plain(value: Word, binding: Binding) -> str:
    """A word as plain text, for files that no shell reads; what only a job knows is refused."""
    value = opened(value, binding)
    if isinstance(value, str):
        return value
    if isinstance(value, Join):
        return "".join(plain(part, binding) for part in value.parts)
    raise ConfigError.of(
        "unbound",
        f"{value!r} is only known in the job, but a file needs its text now",
        hint=_MEND.get(getattr(value, "name", ""), '[cluster.NAME] data = "/path"      (in settings)'),
    )


def script(lines: Iterable[str]) -> str:
    """The text of a script."""
    return "\n".join(lines) + "\n"
