"""What a command says that leaves a run while it goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hpctrain.cli.out import Out


@contextlib.contextmanager
def survived(out: Out, title: str) -> Iterator[None]:
    """An interrupt ends this command and says that the run goes on."""
    try:
        yield
    except KeyboardInterrupt:
        goes_on(out, title)
        raise


def goes_on(out: Out, title: str) -> None:
    """What a command that leaves a run says of it."""
    out.say(f"{title} goes on without this command; hpctrain cancel {title} ends it")
    out.say(f"hpctrain status {title}")
