"""How the trainer ends badly: each kind has its exit code, and nothing that was saved is lost."""

from __future__ import annotations

EXIT_DIVERGED = 65
EXIT_PORT = 69
EXIT_MEMORY = 70
EXIT_CONFIG = 78


class BadConfig(Exception):
    """A setting, the data or a folder is wrong: what, and what to type instead."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def said(self) -> str:
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"error[{self.code}]: {self.message}{hint}"


class Diverged(Exception):
    """The loss stopped being a number."""
