"""Facts that nobody has looked up for long."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from hpctrain.doctor.question import Finding, Question, Verdict, stated
from hpctrain.doctor.site import Site
from hpctrain.model.cluster import Source
from hpctrain.run.this_computer import now

DAYS = 180
"""Sites change partitions, modules and drivers about twice a year."""


def questions(site: Site) -> Iterator[Question]:
    """A line for each source that is too old."""
    for source in site.cluster.source:
        if (days := age(source)) is None or days > DAYS:
            age_text = (
                f"{days} days ago ({source.checked})" if days is not None else f"{source.checked} is no day"
            )
            line = Finding(
                area="sources",
                fact=source.title,
                verdict=Verdict.UNKNOWN,
                expected=f"looked up within {DAYS} days",
                found=age_text,
                source=source.id,
                todo=f"read it again: {source.url}" if source.url else "look for a page that says it today",
            )
            yield stated(f"source {source.id}", line)


def age(source: Source) -> int | None:
    """Days since somebody looked; None where no day is given."""
    try:
        checked = datetime.date.fromisoformat(source.checked)
    except ValueError:
        return None
    return (datetime.date.fromisoformat(now()[:10]) - checked).days
