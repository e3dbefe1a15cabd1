"""This moment, as records and plans write it."""

from __future__ import annotations

from datetime import datetime, timezone


def now() -> str:
    """In UTC as RFC 3339, to the millisecond."""
    moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
