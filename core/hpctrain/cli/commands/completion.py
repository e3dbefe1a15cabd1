"""`hpctrain completion`: a static script, so that a TAB on a loaded login node starts no Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources

import click

from hpctrain.cli.commands._grammar import RUNS, Grammar, common, grammar
from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS
from hpctrain.render.shell import quoted

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_obj
def command(out: Out, shell: str) -> int:
    """Print a completion script: commands, options, what is installed; names of runs are read at each TAB."""
    offer = _filled(_template("offer.template"), grammar())
    if shell == "fish":
        offer = "'" + offer.replace("\\", "\\\\").replace("'", "\\'") + "'"
    out.term.send(_template(shell).replace("@OFFER@", offer))
    return 0


def _filled(text: str, line: Grammar) -> str:
    """The function that all three shells share, with the words of this installation."""
    first = "".join(f" {quoted(f'{name}	{about}')}" for name, about in COMMANDS.items())
    parts = {
        "VALUED": "|".join(line.valued),
        "GROUPS": "|".join(line.groups),
        "COMMON": " ".join(common()),
        "VALUES": _cases(
            {option: [f'"$prefix"{quoted(w)}' for w in ws] for option, ws in line.values.items()},
            " && return",
        ),
        "OPTIONS": _cases({key: map(quoted, words) for key, words in line.options.items() if words}),
        "WORDS": "    '') printf '%s\\n'" + first + " ;;\n" + "\n".join(_places(line.words)),
    }
    for name, value in parts.items():
        text = text.replace(f"@{name}@", value)
    return text


def _cases(words_by_key: Mapping[str, Iterable[str]], then: str = "") -> str:
    lines = (f"{quoted(k)}) printf '%s\\n' {' '.join(words)}{then} ;;" for k, words in words_by_key.items())
    return "\n".join(f"    {line}" for line in lines)


def _places(words_by_key: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    """A case for each command with words; one that takes the name of a run takes it as its first word."""
    for key, words in words_by_key.items():
        fixed = [quoted(word) for word in words if word != RUNS]
        acts = [f"printf '%s\\n' {' '.join(fixed)}"] if fixed else []
        acts += ['[ -n "$first" ] || _hpctrain_runs'] if RUNS in words else []
        if words:
            yield f"    {quoted(key)}) {'; '.join(acts)} ;;"


def _template(name: str) -> str:
    folder = resources.files("hpctrain.cli").joinpath("templates").joinpath("completion")
    return folder.joinpath(name).read_text(encoding="utf-8").rstrip("\n") + ("\n" if name in SHELLS else "")
