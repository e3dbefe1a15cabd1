"""What can be wrong with data, with the file, the line and the column where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from hpctrain_job.lacking import NO_PACKAGE, cure, message

SHOWN_FAULTS, ALIKE_FAULTS = 20, 3
"""So many faults are told one by one, and so many of one kind; the rest is a number."""

GOES_ON = "free some space or choose another place, then run the same command again to resume"
"""The help of whatever the disk refuses."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. `line` and `column` count from 1; `end` is the column after."""

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 1
    end: int | None = None
    where: str = ""
    hint: str = ""
    letters: str = ""
    """What of the line is wrong, where its column is not known."""

    def at(self, file: str, line: int) -> Fault:
        """This fault with its file and line."""
        return replace(self, file=file, line=line)

    def plain(self) -> dict[str, Any]:
        """This fault as a JSON object, without empty fields."""
        return {key: value for key, value in asdict(self).items() if value not in ("", None)}

    @property
    def text(self) -> str:
        """The block that people read in the log of a job."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.file:
            place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
            lines.append(f"  --> {place}  {self.where}".rstrip())
        if self.hint:
            lines.append(f"help: {self.hint}")
        return "\n".join(lines)


def some(faults: Iterable[Fault], most: int = SHOWN_FAULTS) -> list[Fault]:
    """The first ones, and not twenty times the same: of each kind a few."""
    kinds: Counter[tuple[str, str]] = Counter()

    def new(fault: Fault) -> bool:
        kind = fault.code, fault.where
        kinds[kind] += 1
        return kinds[kind] <= ALIKE_FAULTS

    return list(islice(filter(new, faults), most))


class DataError(Exception):
    """The data or an option cannot be used; carries every fault found, in order of place."""

    def __init__(self, faults: Iterable[Fault], omitted: int = 0) -> None:
        self.faults = tuple(faults)
        self.omitted = omitted
        super().__init__("; ".join(f.message for f in self.faults))

    @classmethod
    def of(cls, code: str, message: str, **fields: Any) -> DataError:
        """An error with one fault: the common case."""
        return cls([Fault(code, message, **fields)])

    @classmethod
    def lacking(cls, error: ModuleNotFoundError, user: str, file: str = "") -> DataError:
        """The error for an import that `user` made of a package that is not installed."""
        package = (error.name or "").partition(".")[0]
        return cls.of(NO_PACKAGE, message(user, package), file=file, hint=cure(package))


class RowError(Exception):
    """One row cannot be used; whoever reads the file knows where the row is."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fault = code, message, fields

    @property
    def fault(self) -> Fault:
        """What is wrong; made when it is wanted, since of a million bad rows a thousand are told."""
        code, message, fields = self._fault
        return Fault(code, message, **fields)
