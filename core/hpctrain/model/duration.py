"""Durations as users write them: `90m`, `1h30m`, `2d`, `1:30:00`. A bare number is refused."""

from __future__ import annotations

import re
from functools import total_ordering

from attrs import frozen

_CLOCK = re.compile(r"(?:(\d+)-)?(\d{1,4}):([0-5]\d):([0-5]\d)\Z", re.ASCII)
_UNITS = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?\Z", re.ASCII)


@total_ordering
@frozen
class Duration:
    """A length of time in whole seconds."""

    seconds: int
    """How many; `Duration.parse("90m")` reads what users write."""

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read `text`; ValueError says what was expected."""
        match = _CLOCK.match(text) or (_UNITS.match(text) if text else None)
        if match is None:
            raise ValueError(f'a duration such as "90m", "1:30:00" or "2d" is needed, got {text!r}')
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        if total <= 0:
            raise ValueError(f"a duration longer than zero is needed, got {text!r}")
        return cls(total)

    @property
    def minutes(self) -> float:
        """The same in minutes."""
        return self.seconds / 60

    @property
    def clock(self) -> str:
        """`1-02:03:04`, the form every scheduler reads."""
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        day = f"{days}-" if days else ""
        return f"{day}{hours:02}:{minutes:02}:{seconds:02}"

    @property
    def short(self) -> str:
        """`1h30m`, `2d04h`, `41s`, as people read it."""
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        if days:
            return f"{days}d{hours:02}h" if hours else f"{days}d"
        if hours:
            return f"{hours}h{minutes:02}m" if minutes else f"{hours}h"
        if minutes:
            return f"{minutes}m{seconds:02}s" if seconds else f"{minutes}m"
        return f"{seconds}s"

    def __lt__(self, other: Duration) -> bool:
        return self.seconds < other.seconds
