"""HTTP with patience: retries that are bounded, Retry-After, continued bodies. Standard library."""

from __future__ import annotations

import email.utils
import http.client
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpctrain_job import exit_codes
from hpctrain_job.downloads.credentials import bare, login_for
from hpctrain_job.files import documents

BLOCK = 1 << 20
GAIN = 1 << 20
AGENT = "hpctrain"
FINAL = frozenset({400, 401, 403, 404, 405, 407, 410, 451})
RANGE = 416


class Failed(Exception):
    """A download ended without its file."""

    exit_code = exit_codes.UNAVAILABLE


class Refused(Failed):
    """The server said no, and asking again would not help."""

    exit_code = exit_codes.NOT_ALLOWED

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class WrongContent(Failed):
    """What arrived is not what was pinned."""

    exit_code = exit_codes.DIFFERS


class _Again(Exception):
    """One attempt failed, and the next may succeed, though not before `wait` seconds."""

    def __init__(self, why: str, wait: float | None = None, status: int = 0) -> None:
        super().__init__(why)
        self.wait = wait
        self.status = status


@dataclass(frozen=True)
class Patience:
    """How long we keep asking: `tries` without progress, pauses that double up to `longest`."""

    tries: int = 8
    first: float = 1.0
    longest: float = 300.0
    timeout: float = 60.0

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the next try; a server that asks for too long is not waited for."""
        if retry_after is not None and retry_after > self.longest:
            raise Failed(f"the server asks to wait {retry_after:.0f} s, more than {self.longest:.0f} s")
        # Jitter: hundreds of login-node users share one address and would return together.
        backoff = min(self.longest, self.first * 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311
        return max(retry_after or 0.0, backoff)


def get_json(url: str, *, headers: Mapping[str, str] | None = None, patience: Patience | None = None) -> Any:
    """The JSON document at `url`."""

    def once() -> Any:
        body = _page(url, headers, patience)
        try:
            return documents.parse(body)
        except ValueError:
            raise _Again("the answer is not JSON; a proxy's page?") from None

    return _patiently(url, once, patience or Patience(), lambda: 0, print)


def get_text(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    patience: Patience | None = None,
    say: Callable[[str], None] = print,
) -> str:
    """The page at `url`."""

    def once() -> str:
        return _page(url, headers, patience).decode("utf-8", "replace")

    text: str = _patiently(url, once, patience or Patience(), lambda: 0, say)
    return text


def _page(url: str, headers: Mapping[str, str] | None, patience: Patience | None) -> bytes:
    """A body that is read as a whole, and so must not be of any length."""
    with _open(url, headers or {}, patience or Patience()) as answer:
        try:
            body = answer.read(documents.LARGEST + 1)
        except (http.client.HTTPException, OSError) as error:
            raise _Again(f"broken off: {error}") from None
    if len(body) > documents.LARGEST:
        raise Failed(f"{bare(url)}: the answer is larger than {documents.LARGEST >> 20} MiB")
    return body


def transfer(
    url: str,
    part: Path,
    *,
    headers: Mapping[str, str],
    size: int | None = None,
    patience: Patience | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Bring the body of `url` into `part`, continuing what is there."""
    patience = patience or Patience()

    def once() -> None:
        _continue(url, part, headers, patience, size, say)

    _patiently(url, once, patience, lambda: _length(part), say)


def _patiently(
    url: str,
    once: Callable[[], Any],
    patience: Patience,
    gained: Callable[[], int],
    say: Callable[[str], None],
) -> Any:
    attempt, before = 0, gained()
    while True:
        try:
            return once()
        except _Again as error:  # noqa: PERF203  (a failed try costs seconds, not microseconds)
            # A long download over a bad line is not out of tries while it advances.
            attempt = 0 if gained() - before >= GAIN else attempt + 1
            before = gained()
            if attempt >= patience.tries:
                raise Failed(f"{bare(url)}: {error} ({patience.tries} tries)") from None
            wait = patience.pause(attempt, error.wait)
            say(f"{error}; again in {wait:.1f} s")
            time.sleep(wait)


def _open(url: str, headers: Mapping[str, str], patience: Patience) -> http.client.HTTPResponse:
    address = bare(url)
    request = urllib.request.Request(address, headers={"User-Agent": AGENT})  # noqa: S310
    if request.type not in ("http", "https"):
        raise Refused(f"{address}: only http and https are fetched", 0)
    login = "" if "Authorization" in headers else login_for(url)
    for name, value in {**headers, **({"Authorization": login} if login else {})}.items():
        # A token is for the host it was made for; urllib would carry it along to a redirect's.
        private = name.lower() == "authorization"
        (request.add_unredirected_header if private else request.add_header)(name, value)
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=patience.timeout)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in FINAL:
            raise Refused(f"{address}: {error.code} {error.reason}", error.code) from None
        wait = _retry_after(error.headers.get("Retry-After"))
        raise _Again(f"{error.code} {error.reason}", wait, error.code) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise _Again(f"cannot reach {request.host}: {reason}") from None
    return answer


def _retry_after(text: str | None) -> float | None:
    """The seconds to wait that a header `Retry-After` names, as a number or as a date."""
    if not text:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _continue(
    url: str,
    part: Path,
    headers: Mapping[str, str],
    patience: Patience,
    size: int | None,
    say: Callable[[str], None],
) -> None:
    """One attempt: ask for what is missing, append it, notice a body that ends early."""
    etag = part.with_name(part.name + ".etag")
    have = _length(part)
    if size is not None and have == size:
        return
    old_etag = etag.read_text() if have and etag.exists() else ""
    range_headers = {"Range": f"bytes={have}-"} | ({"If-Range": old_etag} if old_etag else {}) if have else {}
    if have and size is None and not old_etag:
        range_headers, have = {}, 0  # nothing says that the server's file is still the one we have half of
    try:
        answer = _open(url, {**headers, **range_headers}, patience)
    except _Again as error:
        if error.status == RANGE:
            part.unlink(missing_ok=True)
        raise
    with answer:
        start = _start(answer, have)
        _remember(etag, answer.headers.get("ETag"))
        _append(answer, part, start, size, say)


def _start(answer: http.client.HTTPResponse, have: int) -> int:
    """Where the body begins: a server may answer the whole file, or another range than we asked for."""
    if answer.status != 206:
        return 0
    if not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
        raise _Again("the server answered another range than the one we asked for")
    return have


def _append(
    answer: http.client.HTTPResponse, part: Path, start: int, size: int | None, say: Callable[[str], None]
) -> None:
    length = answer.headers.get("Content-Length")
    whole = start + int(length) if length else None
    last_report, have, name = time.monotonic(), start, part.name.removesuffix(".part")
    with part.open("r+b" if start else "wb") as file:
        file.seek(start)
        while block := _read(answer, name):
            file.write(block)
            have += len(block)
            if size is not None and have > size:
                return  # more than was listed: its proof fails, and no disk is filled with it
            if time.monotonic() - last_report > 10:
                last_report = time.monotonic()
                say(_progress(name, have, whole))
    if whole is not None and have < whole:
        raise _Again(f"{name}: {have} of {whole} bytes arrived")


def _read(answer: http.client.HTTPResponse, name: str) -> bytes:
    try:
        return answer.read1(BLOCK)  # what has arrived, so that little is lost when we are killed
    except (http.client.HTTPException, OSError) as error:
        raise _Again(f"{name}: broken off: {error}") from None


def _progress(name: str, have: int, whole: int | None) -> str:
    return f"{name} {have / 1e6:.0f}" + (f" of {whole / 1e6:.0f} MB" if whole else " MB")


def _remember(etag: Path, value: str | None) -> None:
    # A weak tag promises the same meaning, not the same bytes.
    if value and not value.startswith("W/"):
        etag.write_text(value)
    else:
        etag.unlink(missing_ok=True)


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
