"""Asking a service that may be busy: how often, how long between, and when it is pointless."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from hpctrain.plugin import ConfigError, NotReachable

T = TypeVar("T")

_LONGEST = 3600.0
"""Seconds between two tries, whatever the service asks for."""

_BUSY = (408, 425, 429, 500, 502, 503, 504)
_REFUSED = {401: "the hub wants a token", 403: "the token may not write here"}
_CLIENTS = ("httpx", "httpx2", "httpcore", "requests", "urllib3")


@attrs.frozen
class Retries:
    """`most` more tries; `say` hears of each wait."""

    most: int
    say: Callable[[str], object]
    sleep: Callable[[float], None] = time.sleep

    def ask(self, label: str, call: Callable[[], T]) -> T:
        """The answer of `call`; after the last try NotReachable, after a refusal ConfigError."""
        for tried in range(self.most):
            answer, error = _try(call)
            if error is None:
                return answer[0]
            seconds = _wait(error, tried)
            status = _status(error)
            why = f"the hub answered {status}" if status else "the line broke"
            self.say(f"{label}: {why}, try {tried + 2} of {self.most + 1} in {seconds:.0f} s")
            self.sleep(seconds)
        answer, error = _try(call)
        if error is None:
            return answer[0]
        raise _given_up(label, self.most, error) from error


def _try(call: Callable[[], T]) -> tuple[tuple[T, ...], Exception | None]:
    """The answer, or the error that another try may mend; other errors are raised."""
    try:
        return (call(),), None
    except Exception as error:
        status = _status(error)
        if status in _BUSY or _broken_line(error):
            return (), error
        if status:
            raise _refusal(status, error) from error
        raise


def _status(error: BaseException) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)


def _broken_line(error: BaseException) -> bool:
    """Whether the connection failed, in the words of any client that the hub's library uses."""
    kind = type(error)
    client = kind.__module__.partition(".")[0] in _CLIENTS and not _status(error)
    return client or isinstance(error, (ConnectionError, TimeoutError))


def _wait(error: BaseException, tried: int) -> float:
    """What the service asks for, else doubled from try to try, and scattered."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    requested_seconds = _seconds(str(headers.get("Retry-After", "")))
    scattered = 2.0**tried * random.uniform(0.5, 1)  # noqa: S311  (not a secret)
    return min(_LONGEST, max(requested_seconds if requested_seconds is not None else scattered, 0.0))


def _seconds(retry_after: str) -> float | None:
    """The seconds to wait that a header `Retry-After` names, as a number or as a date."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def _refusal(status: int, error: Exception) -> ConfigError:
    return ConfigError.of(
        "hub-refused",
        _REFUSED.get(status, f"the hub answered {status}"),
        hint="hf auth login      (or HF_TOKEN in the environment)" if status in _REFUSED else "",
        notes=(_first_line(error),),
    )


def _given_up(label: str, tried: int, error: Exception) -> NotReachable:
    return NotReachable.of(
        "hub-busy",
        f"{label}: no answer after {tried + 1} tries",
        notes=(_first_line(error),),
        hint="the same command again: what is published is not uploaded twice",
    )


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
