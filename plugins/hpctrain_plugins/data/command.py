"""`hpctrain data`: prepare, count, check, show and mix; the work itself is done by `hpctrain_tokens`."""

from __future__ import annotations

import time

import click

from hpctrain.command import Out, Progress, ProgressLine
from hpctrain.plugin import ConfigError, HpctrainError, IntegrityError, NotReachable
from hpctrain.toolbox import quoted
from hpctrain_plugins.data import named
from hpctrain_plugins.data.problems import problems
from hpctrain_tokens.commands.answer import amount
from hpctrain_tokens.commands.parser import COMMANDS, parser
from hpctrain_tokens.faults import GOES_ON, DataError

HPCTRAIN_API = 1
KINDS: dict[str, type[HpctrainError]] = {
    "data-hub": NotReachable,
    **dict.fromkeys(("data-content", "data-index", "data-truncated", "data-unreadable"), IntegrityError),
}
"""What is neither a wrong row nor a wrong option."""


def subcommands() -> dict[str, list[str]]:
    """Every command with its options, for completion scripts."""
    return {name: parser("hpctrain data", name).long_options for name in COMMANDS}


@click.command(
    "data",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(out: Out, words: tuple[str, ...]) -> int:
    """From datasets to the files a trainer reads: prepare, count, check, show, mix.

    `hpctrain data COMMAND --help` says more.
    """
    try:
        args = parser("hpctrain data").parse_args(words or ("--help",))
        args.ascii = out.term.ascii
        named.put(args, out)
        with _Telling(out) as tell:
            answer = args.run(args, tell)
    except DataError as error:
        kind = KINDS.get(error.faults[0].code, ConfigError)
        failed = kind(*problems(error.faults, error.omitted))
        failed.closing = "nothing was made"
        raise failed from error
    except OSError as error:
        raise HpctrainError.of(
            "data-disk", f"{error.filename or 'a file'}: {error.strerror}", hint=GOES_ON
        ) from error
    except KeyboardInterrupt:
        again = " ".join(map(quoted, ("hpctrain", "data", *words)))
        raise KeyboardInterrupt(again) from None
    if answer.faults:
        return out.problems(ConfigError(*problems(answer.faults)), closing=answer.lines[-1])
    if out.flags.json:
        out.document(answer.name, **{k: v for k, v in answer.values.items() if k != "schema"})
    else:
        out.lines(answer.lines)
        if answer.next:
            out.next(answer.next)
    return 0


class _Telling:
    """Progress of the work, as a line that is redrawn."""

    def __init__(self, out: Out) -> None:
        self._progress = None if out.flags.quiet or out.flags.json else Progress(out.err)
        self._line: ProgressLine | None = None
        self._begun = time.monotonic()

    def __enter__(self) -> _Telling:
        return self

    def __call__(self, read: int, total: int, tokens: int) -> None:
        if self._progress is None:
            return
        if self._line is None:
            self._line = self._progress.line("tokenize", "B")
        rate = tokens / max(time.monotonic() - self._begun, 1e-9)
        note = f"{amount(tokens)} tokens   {amount(rate)} tokens/s"
        self._line.update(done=read, total=total, note=note)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._line is not None:
            self._line.end("ok" if kind is None else "stopped" if kind is KeyboardInterrupt else "FAIL")
