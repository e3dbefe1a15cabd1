"""The options that every command takes, wherever they stand on the line."""

from __future__ import annotations

from hpctrain.errors import ConfigError

SWITCHES = ("json", "quiet", "verbose", "debug", "ascii", "plain", "yes", "no_input", "isolated")
SHORT = {"-q": "quiet", "-v": "verbose", "-y": "yes"}


class Flags:
    """What the user said about every command's output."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    ascii: bool = False
    plain: bool = False
    yes: bool = False
    no_input: bool = False
    isolated: bool = False
    color: bool | None = None

    def __init__(self, **values: bool | None) -> None:
        vars(self).update(values)


def split(argv: list[str]) -> tuple[Flags, list[str]]:
    """Take the common options out of a command line; what follows `--` is left alone."""
    flags = Flags()
    remaining: list[str] = []
    items = iter(argv)
    for item in items:
        name = SHORT.get(item) or item.removeprefix("--").replace("-", "_")
        if item == "--":
            return flags, [*remaining, item, *items]
        if (item.startswith("--") or item in SHORT) and name in SWITCHES:
            setattr(flags, name, True)
        elif name == "color" or item.startswith("--color="):
            flags.color = _color(item.partition("=")[2] or next(items, ""))
        else:
            remaining.append(item)
    return flags, remaining


def _color(word: str) -> bool | None:
    choices = {"always": True, "never": False, "auto": None}
    if word not in choices:
        raise ConfigError.of("usage", f"--color is {word!r}; it is always, never or auto")
    return choices[word]
