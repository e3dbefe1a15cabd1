"""`hpctrain help`: the documentation of an error's slug, of the hooks, of a command; offline."""

from __future__ import annotations

import difflib
import inspect
import re
from importlib import resources

import click

from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS, help_text
from hpctrain.errors import ConfigError

SECTION = re.compile(r"^## (?P<slug>[a-z0-9-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(context: click.Context, topic: str | None) -> int:
    """Explain TOPIC: the slug in an error's brackets, a command, `exit-codes`; for writers of plugins
    `hooks`, `values`, `cluster-file`, or one hook, value or table by its name."""
    out = context.find_object(Out)
    assert out is not None
    if topic is None:
        out.lines(help_text().splitlines())
    elif topic == "hooks":
        out.lines(_hooks())
    elif topic in COMMANDS:
        assert context.parent is not None
        group = context.parent.command
        assert isinstance(group, click.Group)
        found = group.get_command(context, topic)
        assert found is not None
        out.lines(found.get_help(click.Context(found, context.parent, topic)).splitlines())
    else:
        out.lines(_found(topic))
    return 0


def sections() -> dict[str, str]:
    """Every documented slug with its text."""
    text = resources.files("hpctrain.cli").joinpath("errors.md").read_text(encoding="utf-8")
    return {m["slug"]: m["text"].strip() for m in SECTION.finditer(text)}


def _found(topic: str) -> list[str]:
    """All that there is on a word: an error, a table of cluster.toml, a value, a hook."""
    known = sections()
    if topic in known:
        return [topic, "", *known[topic].splitlines()]
    from hpctrain.cli import reference

    lines = [line for section in reference.about(topic) for line in reference.plain(section)]
    lines += _hooks(topic)
    if not lines:
        near = difflib.get_close_matches(topic, [*known, *COMMANDS, *reference.topics()], 3)
        raise ConfigError.of(
            "usage", f"no help on {topic!r}", hint=f"hpctrain help {near[0]}" if near else "hpctrain --help"
        )
    return lines[:-1] if not lines[-1] else lines


def _hooks(only: str = "") -> list[str]:
    from hpctrain.hooks import specs

    lines: list[str] = []
    for name, hook in vars(specs).items():
        if hasattr(hook, "hpctrain_spec") and only in ("", name):
            doc = inspect.getdoc(hook) or ""
            lines += [f"{name}{inspect.signature(hook)}", "", *doc.splitlines(), "", ""]
    return lines[:-1]
