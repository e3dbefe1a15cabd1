"""The only way out: every program that the control plane starts is started here.

Argv lists and never a shell, a small clean environment, a limit on every wait, a process group of
its own that ends with the call, and a list of what was started, without the values of secrets.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import attrs

from hpctrain.errors import HpctrainError, NotReachable, Problem, StepFailed, TimedOut
from hpctrain.run.system import files
from hpctrain.run.system.interrupts import delayed_interrupts
from hpctrain.run.system.scrub import Sink, scrub
from hpctrain_job.files import shared

BASE = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR")
"""What a child sees of the caller's shell, besides LC_*: a stray PYTHONPATH is no part of a run."""

_LONGEST_LINE = 4096
TICK = 0.1
"""Seconds between two looks at whether a program that writes nothing has ended."""


@attrs.frozen
class Done:
    """How a program ended and what it wrote."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str


@attrs.define(kw_only=True)
class Call:
    """One started program, as `-v` shows it; `code` stays None when we ended it."""

    argv: tuple[str, ...]
    code: int | None = None
    seconds: float = 0.0


class ToolFailed(StepFailed):
    """A program ended with a code that its caller did not expect; `done` has what it wrote."""

    def __init__(self, done: Done, problem: Problem) -> None:
        super().__init__(problem)
        self.done = done


class Tools:
    """Starts programs. `keep` names further variables of the caller's shell that children may see;
    `secrets` are values that must not appear in `calls` or in an error."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        keep: Iterable[str] = (),
        secrets: Iterable[str] = (),
        grace: float = 10.0,
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._keep = frozenset((*BASE, *keep))
        self._secrets = set(secrets)
        self._grace = grace
        self.calls: list[Call] = []

    def hide(self, *values: str) -> None:
        """Take these values out of everything that is shown from now on."""
        self._secrets.update(values)

    def which(self, name: str) -> str | None:
        """The path of a program, or None when this machine does not have it."""
        return shutil.which(name, path=self._environ.get("PATH", os.defpath))

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,  # noqa: A002  (the word that everybody knows from subprocess)
        timeout: float = 60.0,
        ok: Container[int] = (0,),
        inherit: bool = False,
    ) -> Done:
        """Run a program and return what it wrote; ToolFailed when its code is not in `ok`."""
        environment = self._env(env, inherit)
        with self._started(argv, cwd, environment, fed=input is not None) as child:
            try:
                out, err = child.communicate(input, timeout)
            except subprocess.TimeoutExpired:
                raise self._too_long(argv, timeout) from None
        done = Done(tuple(argv), child.returncode, out, err)
        if done.code not in ok:
            raise ToolFailed(done, self._unexpected(done))
        return done

    def stream(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
        timeout: float | None = None,
        inherit: bool = False,
    ) -> int:
        """Run a long program, append all it writes to `log`, report its last line, return its code.

        Secrets that we know are in neither. A line that is rewritten by carriage returns is reported as it
        stands. An interrupt or the limit ends the whole process group: TERM, then KILL when it does not end
        in time.
        """
        with files.naming(log):
            descriptor = shared.open_append(log)
        environment = self._env(env, inherit)
        last = LastLine(on_line and (lambda line: on_line(self.scrubbed(line))))
        sink = Sink(self._secrets)
        with os.fdopen(descriptor, "ab", buffering=0) as file:

            def take(data: bytes) -> None:
                visible = sink.feed(data)
                with files.naming(log):
                    file.write(visible)
                last.feed(visible)
                if not data:
                    last.feed(b"")

            try:
                with self._started(argv, cwd, environment, take=take) as child:
                    if not _drain(child, take, timeout):
                        raise self._too_long(argv, timeout or 0)
            finally:
                with contextlib.suppress(OSError):
                    file.write(sink.feed(b""))
        return child.returncode

    def terminal(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str] | None = None
    ) -> int:
        """Give the caller's terminal to a program until it ends, and return its code.

        Ctrl-C is the program's meanwhile; its end is its user's, or that of the job it is in.
        """
        # Not ignored: that would pass on to the program.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            child = _popen(argv, cwd, self._env(env, inherit=False), fed=False, merged=False, terminal=True)
            try:
                return child.wait()
            except BaseException:
                child.terminate()
                child.wait(self._grace)
                raise
        finally:
            signal.signal(signal.SIGINT, before)

    def _env(self, extra: Mapping[str, str] | None, inherit: bool) -> dict[str, str]:
        base = {
            name: value
            for name, value in self._environ.items()
            if inherit or name in self._keep or name.startswith("LC_")
        }
        return {**base, **(extra or {})}

    @contextlib.contextmanager
    def _started(
        self,
        argv: Sequence[str],
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str],
        *,
        fed: bool = False,
        take: Callable[[bytes], None] | None = None,
    ) -> Iterator[subprocess.Popen[str]]:
        """A running program, noted in `calls`; its whole group ends when the block raises.

        With `take` both its outputs are one stream that is passed there.
        """
        call = Call(argv=tuple(self.scrubbed(word) for word in argv))
        self.calls.append(call)
        began = time.monotonic()
        child: subprocess.Popen[str] | None = None
        try:
            with delayed_interrupts():
                child = _popen(argv, cwd, env, fed=fed, merged=take is not None)
            yield child
            call.code = child.returncode
        except BaseException:
            if child is not None:
                self._end(child, take or _nowhere)
            raise
        finally:
            call.seconds = time.monotonic() - began
            if child is not None:
                _close(child)

    def _end(self, child: subprocess.Popen[str], take: Callable[[bytes], None]) -> None:
        """TERM to the group, time to tidy up while its last words are kept, then KILL."""
        try:
            _signal(child, signal.SIGTERM)
            _drain(child, take, self._grace)
        finally:
            _signal(child, signal.SIGKILL)
            # What hangs in the kernel, on a file system that does not answer, ends when that does.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(self._grace)

    def scrubbed(self, text: str) -> str:
        """`text` without the secrets that we know or recognise."""
        return scrub(text, self._secrets)

    def _command_text(self, argv: Sequence[str]) -> str:
        return self.scrubbed(shlex.join(argv))

    def _too_long(self, argv: Sequence[str], seconds: float) -> HpctrainError:
        return TimedOut.of(
            "timeout", f"{argv[0]} did not end within {seconds:g} s", notes=(self._command_text(argv),)
        )

    def _unexpected(self, done: Done) -> Problem:
        last_lines = (done.err.strip() or done.out.strip()).splitlines()[-8:]
        return Problem(
            code="tool-failed",
            message=f"{done.argv[0]} {ending(done.code)}",
            notes=(self._command_text(done.argv), *(self.scrubbed(line) for line in last_lines)),
        )


def become(program: str, argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Go on as this program, in the same process."""
    os.execve(program, list(argv), environ)  # noqa: S606  (no shell is wanted)


def ending(code: int) -> str:
    """`ended with exit code 3`, or `was ended by SIGKILL`."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _popen(
    argv: Sequence[str],
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str],
    *,
    fed: bool,
    merged: bool,
    terminal: bool = False,
) -> subprocess.Popen[str]:
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if program is None:
        raise NotReachable.of("not-here", f"{argv[0]} is needed, which is not on this computer")
    with files.naming(Path(cwd or "."), f"start {argv[0]} in"):
        if terminal:
            return subprocess.Popen(argv, executable=program, cwd=cwd, env=env, text=True)
        return subprocess.Popen(
            argv,
            executable=program,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )


def _nowhere(data: bytes) -> None:
    """Where the last words of a program go that nobody listens to."""


def _close(child: subprocess.Popen[str]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def _drain(child: subprocess.Popen[str], take: Callable[[bytes], None], seconds: float | None) -> bool:
    """Pass on what the child writes until it has ended; False when `seconds` are over before that.

    The end is the end of the program, not of its output: a server that it left behind may hold the
    pipe open for ever.
    """
    until = None if seconds is None else time.monotonic() + seconds
    pipe = child.stdout.fileno() if child.stdout else -1
    open_ = True
    while until is None or time.monotonic() < until:
        over = child.poll() is not None
        if not open_:
            time.sleep(0 if over else TICK)
        elif select.select([pipe], [], [], 0 if over else TICK)[0]:
            data = os.read(pipe, 65536)
            open_ = bool(data)
            take(data)
            continue
        if over:
            return True
    return False


def _signal(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


class LastLine:
    """Gathers bytes and reports each complete line, as a terminal would show it: carriage returns end a
    line too, as bars do."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._partial_line = b""

    def feed(self, data: bytes) -> None:
        """Take more bytes; of several complete lines only the last is reported. b"" is the end."""
        if self._on_line is None:
            return
        *lines, partial_line = (self._partial_line + data).replace(b"\r", b"\n").split(b"\n")
        self._partial_line = partial_line[-_LONGEST_LINE:]
        if not data:
            lines, self._partial_line = [self._partial_line], b""
        visible_lines = [line for line in lines if line.strip()]
        if visible_lines:
            self._on_line(visible_lines[-1][-_LONGEST_LINE:].decode("utf-8", "replace").strip())
