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
from hpctrain.ui.term import Term

SECTION = re.compile(r"^## (?P<slug>[a-z0-9-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(context: click.Context, topic: str | None) -> int:
    """Explain TOPIC: the slug in an error's brackets, a command, `exit-codes`; a key or a table of run file,
    cluster.toml or settings (`keep`, `policy.submit_env`); for writers of plugins `hooks`, `values`,
    `run-file`, `cluster-file`, `settings`, or one hook, value, method or error by its name."""
    out = context.find_object(Out)
    assert out is not None
    if topic is None:
        out.lines(help_text().splitlines())
    elif topic == "hooks":
        out.lines(_hooks(out.term))
    elif topic in COMMANDS:
        assert context.parent is not None
        group = context.parent.command
        assert isinstance(group, click.Group)
        subcommand = group.get_command(context, topic)
        assert subcommand is not None
        out.lines(subcommand.get_help(click.Context(subcommand, context.parent, topic)).splitlines())
        out.lines(_key_lines(topic, out.term))
    else:
        out.lines(_topic_lines(topic, out.term))
    return 0


def sections() -> dict[str, str]:
    """Every documented slug with its text."""
    text = resources.files("hpctrain.cli").joinpath("errors.md").read_text(encoding="utf-8")
    return {m["slug"]: m["text"].strip() for m in SECTION.finditer(text)}


def _topic_lines(topic: str, term: Term) -> list[str]:
    """All that there is on a word: an error, a table of cluster.toml, a value, a hook."""
    help_sections = sections()
    if topic in help_sections:
        return [topic, "", *term.reflowed(help_sections[topic]), *_key_lines(topic, term)]
    from hpctrain.cli.show import reference
    from hpctrain.cli.show.sections import plain

    lines = [line for section in reference.about(topic) for line in plain(section, term.width)]
    lines += _hooks(term, topic)
    if not lines:
        near = difflib.get_close_matches(topic, [*help_sections, *COMMANDS, *reference.topics()], 3)
        raise ConfigError.of(
            "usage", f"no help on {topic!r}", hint=f"hpctrain help {near[0]}" if near else "hpctrain --help"
        )
    return lines[:-1] if not lines[-1] else lines


def _key_lines(topic: str, term: Term) -> list[str]:
    """What the files' keys of a name mean that is also a slug's or a command's."""
    from hpctrain.cli.show import reference
    from hpctrain.cli.show.sections import plain

    lines = [line for section in reference.keys(topic) for line in plain(section, term.width)]
    return ["", *lines[:-1]] if lines else []


def _hooks(term: Term, only: str = "") -> list[str]:
    from hpctrain.hooks import specs

    lines: list[str] = []
    for name, hook in vars(specs).items():
        if hasattr(hook, "hpctrain_spec") and only in ("", name):
            doc = inspect.getdoc(hook) or ""
            lines += [*term.wrapped(f"{name}{inspect.signature(hook)}"), "", *term.reflowed(doc), "", ""]
    return lines[:-1]
