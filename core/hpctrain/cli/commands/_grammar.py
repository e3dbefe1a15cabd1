"""What may stand where on a command line: taken from the commands themselves, for completion scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import click
from attrs import frozen

from hpctrain.cli.app import Commands, module_of
from hpctrain.cli.flags import SHORT, SWITCHES
from hpctrain.cli.table import COMMANDS
from hpctrain.errors import HpctrainError
from hpctrain.hooks.scan import names

RUNS, TOML, FILES = "runs", ":toml", ":files"
"""Places whose words are only known when TAB is pressed."""
PLACES = {
    "run": (RUNS,),
    "runs": (RUNS,),
    "references": (RUNS, TOML),
    "run_file": (TOML,),
    "source": (RUNS, FILES),
    "logs": (RUNS, FILES),
    "files": (FILES,),
}
"""Name of an argument -> what it takes."""


@frozen(kw_only=True)
class Grammar:
    """Options and words by command, `init run` where a command has commands of its own."""

    options: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    """Option -> the words that it takes, where there is a list."""
    valued: tuple[str, ...]
    """Options that are followed by a value."""
    groups: tuple[str, ...]


def common() -> list[str]:
    """The options of every command."""
    return ["--help", "--color", *("--" + name.replace("_", "-") for name in SWITCHES), *SHORT]


def grammar() -> Grammar:
    """That of every command which can be loaded here."""
    options: dict[str, tuple[str, ...]] = {}
    words: dict[str, tuple[str, ...]] = {}
    values: dict[str, tuple[str, ...]] = {"--color": ("always", "never", "auto")}
    valued, groups = {"--color"}, []
    for key, command in _commands():
        parameters = [p for p in command.params if isinstance(p, click.Option)]
        options[key] = tuple(sorted(opt for p in parameters for opt in p.opts if opt.startswith("--")))
        for parameter in parameters:
            if not (parameter.is_flag or parameter.count):
                valued.update(parameter.opts)
                if choices := _choices(parameter):
                    values.update(dict.fromkeys(parameter.opts, choices))
        words[key] = _words(key, command)
        below = _below(command)
        if below:
            groups.append(key)
            words[key] = tuple(below)
            options.update({f"{key} {name}": tuple(below[name]) for name in below if below[name]})
            words.update({f"{key} {name}": (FILES,) for name in below if f"{key} {name}" not in words})
    return Grammar(
        options=options, words=words, values=values, valued=tuple(sorted(valued)), groups=tuple(groups)
    )


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that is installed, and below groups those of the group."""
    group, context = Commands("hpctrain"), click.Context(click.Command("hpctrain"))
    for name in COMMANDS:
        try:
            command = group.get_command(context, name)
        except HpctrainError:  # it comes with a plugin that is not installed
            continue
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", below) for inner, below in command.commands.items())
        yield name, command


def _below(command: click.Command) -> Mapping[str, tuple[str, ...]]:
    """The commands of a command with their options; those of a click group are listed themselves."""
    if isinstance(command, click.Group):
        return dict.fromkeys(command.commands, ())
    listed = getattr(module_of(command.name), "subcommands", None) if command.name in COMMANDS else None
    return listed() if listed else {}


def _words(key: str, command: click.Command) -> tuple[str, ...]:
    """What its first argument takes."""
    argument = next((p for p in command.params if isinstance(p, click.Argument)), None)
    if argument is None:
        return ()
    name = str(argument.name)
    if name == "topic":
        return (*COMMANDS, *_slugs())
    if name == "cluster" or key == "clusters":
        return tuple(names("clusters"))
    return _choices(argument) or PLACES.get(name, ())


def _choices(parameter: click.Parameter) -> tuple[str, ...]:
    """The words that a parameter takes, where they are a list."""
    if isinstance(parameter.type, click.Choice):
        return tuple(map(str, parameter.type.choices))
    lists = {opt: LISTS[opt] for opt in parameter.opts if opt in LISTS}
    return tuple(next(iter(lists.values()))()) if lists else ()


def _slugs() -> list[str]:
    from hpctrain.cli.commands.help import sections

    return list(sections())


def _examples() -> list[str]:
    from hpctrain.cli.shared.examples import every_example

    return [example.title for example in every_example()]


LISTS: Mapping[str, Callable[[], list[str]]] = {
    "--on": lambda: [*names("clusters"), "all"],
    "--like": lambda: names("clusters"),
    "--trainer": lambda: names("trainers"),
    "--example": _examples,
}
"""Options whose values are what is installed."""
