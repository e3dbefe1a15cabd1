"""One command: options, the lazily imported module, errors as problems, exit codes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import ModuleType
from typing import Any

import click

from hpctrain.cli import flags as common
from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS, PLUGIN_COMMANDS
from hpctrain.errors import INTERRUPTED, ConfigError, HpctrainError, Problem

BROKEN_PIPE = 141


class ReaderLeft(Exception):
    """Whoever read our output has enough of it."""


class Commands(click.Group):
    """Imports a command's module when it is called, and offers the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        command = _module(name).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not (args[0] in COMMANDS or _brought(args[0])):
            raise _unknown(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """click itself ends with 1 where a command prints more than a pipe holds."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderLeft from error


def run(argv: list[str]) -> int:
    """Run a command line; every way it can end is an exit code."""
    try:
        flags, rest = common.split(argv)
    except ConfigError as error:
        return Out.of(common.Flags(), os.environ).problems(error)
    out = Out.of(flags, os.environ)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)  # steps that run here must end with us
    try:
        # For an option that nobody uses click would look for a translation in 24 files.
        helps = ["-h", "--help"] if {"-h", "--help", "help"}.intersection(rest) else []
        group = Commands("hpctrain", context_settings={"help_option_names": helps})
        code = group.main(rest, prog_name="hpctrain", standalone_mode=False, obj=out)
        sys.stdout.flush()
    except HpctrainError as error:
        return out.problems(error)
    except click.ClickException as error:
        return out.problems(_usage(error))
    except (KeyboardInterrupt, click.Abort) as stopped:
        again = str(stopped.__cause__ or stopped)  # click puts an Abort around it
        out.say(f"interrupted; what is made is kept, to go on: {again}" if again else "interrupted")
        return INTERRUPTED
    except (BrokenPipeError, ReaderLeft):
        # The reader left: nothing more to say, and Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        return out.problems(_bug(error))
    return code if isinstance(code, int) else 0


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _module(name: str) -> ModuleType:
    """Core's own module of this name, or the one that a plugin brings."""
    if _brought(name):
        from hpctrain.hooks import load

        return load.load(load.find("commands", name))
    if name in PLUGIN_COMMANDS:
        extra = PLUGIN_COMMANDS[name]
        raise ConfigError.of("usage", f"{name} comes with a plugin", hint=f"pip install 'hpctrain[{extra}]'")
    return importlib.import_module(f"hpctrain.cli.{name.replace('continue', 'continue_')}")


def _brought(name: str) -> bool:
    """Whether an installed plugin brings this command; asked only for names that core lacks."""
    from hpctrain.hooks.scan import installed

    return (name in PLUGIN_COMMANDS or name not in COMMANDS) and f"commands:{name}" in installed()


def _unknown(name: str) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"hpctrain {near[0]}" if near else "hpctrain --help"
    return ConfigError.of("usage", f"no command {name!r}", hint=hint)


def _usage(error: click.ClickException) -> ConfigError:
    import difflib

    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "hpctrain --help"
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = f"{context.info_name} has no option {error.option_name}"
        known = [o.lstrip("-") for p in context.command.params for o in p.opts if o.startswith("--")]
        near = difflib.get_close_matches(error.option_name.lstrip("-"), known, 1)
        hint = f"{context.command_path} --{near[0]}" if near else hint
    return ConfigError.of("usage", message[:1].lower() + message[1:], hint=hint)


def _bug(error: Exception) -> HpctrainError:
    said = f"{type(error).__name__}: {error}"
    return HpctrainError(
        Problem(code="bug", message=f"this is our mistake: {said}", hint="the same command with --debug")
    )
