"""`hpctrain completion`: a static script, so that a TAB on a loaded login node starts no Python."""

from __future__ import annotations

import click

from hpctrain.cli.app import Commands
from hpctrain.cli.flags import SWITCHES
from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS, PLUGIN_COMMANDS
from hpctrain.hooks.scan import names

BASH = """\
# bash completion for hpctrain: hpctrain completion bash > ~/.local/share/bash-completion/completions/hpctrain
_hpctrain() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options
  case $before in
    --on) mapfile -t COMPREPLY < <(compgen -W "{clusters} all" -- "$word"); return ;;
  esac
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{commands}" -- "$word"); return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options {common}" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$word"; compgen -d -- "$word")
  fi
}}
complete -o filenames -F _hpctrain hpctrain
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def command(out: Out, shell: str) -> int:
    """Print a completion script: commands, their options and the installed clusters, baked in."""
    options = {name: _options(name) for name in COMMANDS if name not in PLUGIN_COMMANDS}
    out.term.send(SCRIPTS[shell](options, names("clusters")))
    return 0


def _options(name: str) -> list[str]:
    found = Commands("hpctrain").get_command(click.Context(click.Command("hpctrain")), name)
    assert found is not None
    return sorted(o for p in found.params for o in p.opts if o.startswith("--"))


def _common() -> list[str]:
    return ["--color", *("--" + name.replace("_", "-") for name in SWITCHES)]


def _bash(options: dict[str, list[str]], clusters: list[str]) -> str:
    cases = "\n".join(f'    {name}) options="{" ".join(found)}" ;;' for name, found in options.items())
    return BASH.format(
        clusters=" ".join(clusters), commands=" ".join(COMMANDS), cases=cases, common=" ".join(_common())
    )


def _zsh(options: dict[str, list[str]], clusters: list[str]) -> str:
    return "#compdef hpctrain\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(options, clusters)


def _fish(options: dict[str, list[str]], clusters: list[str]) -> str:
    first = "__fish_use_subcommand"
    lines = ["# fish completion for hpctrain"]
    for name, line in COMMANDS.items():
        lines.append(f"complete -c hpctrain -n {first} -f -a {name} -d '{line}'")
    for name, found in options.items():
        for option in found:
            inside = f"'__fish_seen_subcommand_from {name}'"
            lines.append(f"complete -c hpctrain -n {inside} -l {option.removeprefix('--')}")
    lines += [f"complete -c hpctrain -l {option.removeprefix('--')}" for option in _common()]
    lines.append(f"complete -c hpctrain -l on -x -a '{' '.join(clusters)} all'")
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
