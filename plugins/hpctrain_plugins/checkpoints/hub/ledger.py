"""What was published, line by line: a command that is killed goes on where its last line ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from hpctrain.plugin import ConfigError
from hpctrain.toolbox import Record, make_folder

PUBLISHED = ("uploaded", "exists")


@attrs.frozen
class Ledger:
    """An append-only file beside the conversions."""

    path: Path

    def note(self, event: str, step: int, repository: str, **fields: object) -> None:
        """Add a line, through to the disk."""
        Record(self.path).append(event, step=step, repository=repository, **fields)

    def done(self) -> dict[tuple[int, str], str]:
        """(step, repository) -> how it came to be there."""
        return self._last(PUBLISHED)

    def judged(self) -> set[int]:
        """The numbers of the steps whose checkpoints were evaluated without an error."""
        return {step for step, _ in self._last(("evaluated",))}

    def _last(self, events: tuple[str, ...]) -> dict[tuple[int, str], str]:
        lines = Record(self.path).read()
        return {(e["step"], e["repository"]): e["event"] for e in lines if e["event"] in events}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second command that would publish the same; a killed one leaves no lock behind."""
        make_folder(self.path.parent)
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            message = f"another command writes {self.path}"
            raise ConfigError.of("publishing", message, where=str(self.path)) from None
        try:
            yield
        finally:
            os.close(descriptor)
