"""How the trainer ends badly: each kind has its exit code, and nothing that was saved is lost."""

from __future__ import annotations

from hpctrain_job import exit_codes

EXIT_DIVERGED = exit_codes.DIVERGED
EXIT_PORT = exit_codes.UNAVAILABLE
EXIT_MEMORY = exit_codes.FAILED
EXIT_CONFIG = exit_codes.CONFIG


class BadConfig(Exception):
    """A setting, the data or a folder is wrong: what, which setting of ours, and what to type instead."""

    def __init__(
        self, code: str, message: str, hint: str = "", *, where: str = "", notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.where = f"train.trl.{where}" if where else ""
        self.notes = notes

    @property
    def text(self) -> str:
        details = [("where", self.where), *(("note", note) for note in self.notes), ("hint", self.hint)]
        lines = "".join(f"\n  {word}: {text}" for word, text in details if text)
        return f"error[{self.code}]: {self.message}{lines}"


class Diverged(Exception):
    """The loss stopped being a number."""
