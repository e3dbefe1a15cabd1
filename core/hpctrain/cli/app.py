"""One command: options, the lazily imported module, errors as problems, exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from types import ModuleType
from typing import Any

import click

from hpctrain.cli import flags as common
from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS, EVERYWHERE, OPTION_SYNONYMS, PLUGIN_COMMANDS, SYNONYMS
from hpctrain.errors import INTERRUPTED, ConfigError, HpctrainError, Problem

BROKEN_PIPE = 141


class ReaderLeft(Exception):
    """Whoever read our output has enough of it."""


class Commands(click.Group):
    """Imports a command's module when it is called, and offers the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        command = module_of(name).command
        assert isinstance(command, click.Command)
        for described in (command, *getattr(command, "commands", {}).values()):
            described.epilog = EVERYWHERE
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
        flags, remaining = common.split(argv)
    except ConfigError as error:
        return Out.of(common.Flags(), os.environ).problems(error)
    out = Out.of(flags, os.environ)
    if flags.isolated or os.environ.get("HPCTRAIN_ISOLATED"):
        from hpctrain.cli import isolated

        if fault := isolated.fault():
            return out.problems(fault)
        isolated.start_again()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)  # steps that run here must end with us
    try:
        # For an option that nobody uses click would look for a translation in 24 files.
        helps = ["-h", "--help"] if {"-h", "--help", "help"}.intersection(remaining) else []
        group = Commands("hpctrain", context_settings={"help_option_names": helps})
        code = group.main(remaining, prog_name="hpctrain", standalone_mode=False, obj=out)
        sys.stdout.flush()
    except HpctrainError as error:
        return out.problems(error)
    except click.ClickException as error:
        return out.problems(_usage(error))
    except (KeyboardInterrupt, click.Abort) as stopped:
        again = str(stopped.__cause__ or stopped)  # click puts an Abort around it
        out.say(f"interrupted; finished work is kept. To resume: {again}" if again else "interrupted")
        return INTERRUPTED
    except (BrokenPipeError, ReaderLeft):
        # The reader left: nothing more to say, and Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        return out.problems(_unforeseen(error, remaining))
    return code if isinstance(code, int) else 0


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def module_of(name: str) -> ModuleType:
    """Core's own module of this name, or the one that a plugin brings."""
    if _brought(name):
        from hpctrain.hooks import load

        return load.load(load.find("commands", name))
    if name in PLUGIN_COMMANDS:
        extra = PLUGIN_COMMANDS[name]
        raise ConfigError.of("usage", f"{name} comes with a plugin", hint=f"pip install 'hpctrain[{extra}]'")
    return importlib.import_module(f"hpctrain.cli.commands.{name.replace('continue', 'continue_')}")


def _brought(name: str) -> bool:
    """Whether an installed plugin brings this command; asked only for names that core lacks."""
    from hpctrain.hooks.scan import installed

    return (name in PLUGIN_COMMANDS or name not in COMMANDS) and f"commands:{name}" in installed()


def _unknown(name: str) -> ConfigError:
    import difflib

    command = SYNONYMS.get(name) or _scheduler_words().get(name)
    synonym = [command] if command else []
    near = synonym or difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"hpctrain {near[0]}" if near else "hpctrain --help"
    return ConfigError.of("usage", f"no command {name!r}", hint=hint)


def _scheduler_words() -> dict[str, str]:
    """What the programs of installed schedulers are called here: their modules' `SYNONYMS`."""
    from hpctrain.hooks.load import find, load
    from hpctrain.hooks.scan import names

    words: dict[str, str] = {}
    for scheduler in names("schedulers"):
        with contextlib.suppress(HpctrainError):  # a broken plugin only lacks its words
            words |= getattr(load(find("schedulers", scheduler)), "SYNONYMS", {})
    return words


def _usage(error: click.ClickException) -> ConfigError:
    import difflib

    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context is not None else "hpctrain --help"
    if isinstance(error, click.NoSuchOption) and context is not None:
        message = f"{context.info_name} has no option {error.option_name}"
        option_names = [o.lstrip("-") for p in context.command.params for o in p.opts if o.startswith("--")]
        near = difflib.get_close_matches(error.option_name.lstrip("-"), option_names, 1)
        hint = f"{context.command_path} --{near[0]}" if near else hint
        hint = _elsewhere(error.option_name) or hint
    return ConfigError.of("usage", message[:1].lower() + message[1:], hint=hint)


def _elsewhere(option: str) -> str:
    """What an option of other programs is here: a command, or a key of the run file."""
    if option in OPTION_SYNONYMS:
        return f"hpctrain {OPTION_SYNONYMS[option]}"
    keys = {"--nodes", "--gpus", "--time", "--queue"}
    return f"--set resources.{option.removeprefix('--')}=…" if option in keys else ""


def _unforeseen(error: Exception, words: list[str]) -> HpctrainError:
    """A package that only an extra brings is the user's to install; everything else is our bug."""
    from hpctrain.hooks.packages import lacking

    return lacking(error, words[0] if words else "hpctrain") or _bug(error)


def _bug(error: Exception) -> HpctrainError:
    description = f"{type(error).__name__}: {error}"
    return HpctrainError(
        Problem(
            code="bug",
            message=f"internal error (a bug in hpctrain): {description}",
            hint="the same command with --debug",
        )
    )
