"""Why pip or uv pinned nothing, read from their own words: each cause has a cure of its own.

Only what is known is called by its name: packages that do not fit are those of which the tool itself says
so, after every index has answered. What nobody knows is shown as the tool said it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from attrs import frozen

from hpctrain.plugin import ConfigError, HpctrainError, IntegrityError, NotReachable, StepFailed
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec

PACKAGES = "environment.packages"
LAST = 6
"""Lines of the tool that are shown."""

_SKIPPED = re.compile(r"Could not fetch URL (?P<url>\S+): (?P<reason>.*) - skipping")
_CLOSED = re.compile(r"\b40[13] Client Error")
_ABSENT = re.compile(r"\b(?:404|410) Client Error")
_URL = re.compile(
    r"(?:Failed to fetch: `?|for url[ :]+\(?|Could not fetch URL |while getting "
    r"|An index (?:URL )?\(|a source of \S+ \S+: )"
    r"(https?://[^\s`)]+)"
)
_NOWHERE = re.compile(
    r"from versions: none|was not found in the (?:package registry|provided)|nobody knows whether there is"
)
_MISSING = re.compile(
    r"(?:satisfies the requirement|there is no version of|Because(?= \S+ was not found)) ([A-Za-z0-9]\S*)"
)
_DAMAGED = re.compile(
    r"Because (\S+) has an invalid package format|Wheel '([^']+)' located at \S+ is invalid"
    r"|ERROR: (\S+) has an invalid wheel"
    r"|Failed to download `(\S+)` cause: (?:Failed to extract archive|The wheel is invalid)"
)
"""A package whose file came, and is none."""
_UNSOLVED = re.compile(
    r"No solution found when resolving|ResolutionImpossible|No matching distribution found"
    r"|Could not find a version that satisfies|conflicting dependencies"
)


@frozen(kw_only=True)
class Outage:
    """One way in which an index is out of reach; `{host}`, `{machine}` and `{table}` are filled in."""

    code: str
    pattern: re.Pattern[str]
    message: str
    hint: str
    error: Callable[..., HpctrainError] = NotReachable.of
    where: str = ""
    empty: bool = False
    """It counts where nothing at all was found: an index may refuse a page that another one has."""


_MIRROR = '[environment.{table}]\nindex_url = "https://…"      or lock where the index can be reached'
_LOGIN = "machine {machine} login USER password TOKEN      (a line of ~/.netrc, mode 0600)"
_ADDRESS = 'index_url = "https://…/simple"      (of [environment.{table}], pip.conf or PIP_INDEX_URL)'

OUTAGES = (
    Outage(
        code="no-index",
        pattern=re.compile(r"network was disabled"),
        message="uv is told to stay offline",
        hint="unset UV_OFFLINE      (or `offline` in uv.toml)",
    ),
    Outage(
        code="index-certificate",
        pattern=re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|invalid peer certificate"),
        message="{host} shows a certificate that this computer does not trust",
        hint="export SSL_CERT_FILE=/path/of/the/site-ca.pem      (an old pip: PIP_CERT)",
    ),
    Outage(
        code="index-proxy",
        pattern=re.compile(
            r"proxy authorization required|407 Proxy Auth|\(407 |HTTP error 407|\b407 Client Error",
            re.IGNORECASE,
        ),
        message="the proxy on the way to {host} wants a login",
        hint="export https_proxy=http://USER:PASSWORD@HOST:PORT",
    ),
    Outage(
        code="index-proxy",
        pattern=re.compile(
            r"tunnel error|Tunnel connection failed|ProxyError|connect to proxy|proxy connection"
        ),
        message="the proxy on the way to {host} cannot be reached, or does not let us through",
        hint="export https_proxy=http://HOST:PORT      (or: unset https_proxy http_proxy all_proxy)",
    ),
    Outage(
        code="index-url",
        pattern=re.compile(
            r"for '--?(?:index|default-index|extra-index|find-links)|`?UV_\w*INDEX\w*`?.*invalid"
            r"|Port out of range|Invalid URL|InvalidURL"
        ),
        message="the address of a package index is none",
        hint=_ADDRESS,
        error=ConfigError.of,
    ),
    Outage(
        code="index-url",
        pattern=re.compile(r"is not a trusted or secure host|provide a scheme|is ignored: it is"),
        message="the address of a package index is ignored",
        hint=_ADDRESS,
        error=ConfigError.of,
        empty=True,
    ),
    Outage(
        code="index-login",
        pattern=re.compile(r"HTTP status client error \(40[13]|HTTP error 40[13]"),
        message="{host} wants a login, or another one",
        hint=_LOGIN,
    ),
    Outage(
        code="index-login",
        pattern=re.compile(r"\b40[13] (?:Client Error|Unauthorized|Forbidden)|valid authentication"),
        message="{host} wants a login, or another one",
        hint=_LOGIN,
        empty=True,
    ),
    Outage(
        code="no-index",
        pattern=re.compile(
            r"HTTP status server error|too many \d+ error responses|\b5\d\d Server Error"
            r"|HTTP error (?:5\d\d|429|408)|\b5\d\d (?:Internal|Bad|Service|Gateway)"
            r"|HTTP status client error \((?:429|408)|\b(?:429|408) Client Error"
        ),
        message="{host} cannot answer now",
        hint="hpctrain lock      (again later)",
    ),
    Outage(
        code="no-index",
        pattern=re.compile(
            r"dns error|Name or service not known|name resolution|NameResolution|Failed to resolve"
        ),
        message="nobody knows the name {host} here",
        hint=_MIRROR,
    ),
    Outage(
        code="no-index",
        pattern=re.compile(
            r"Connection (?:refused|reset|aborted|broken)|timed out|Timeout|unreachable|No route to host"
            r"|connection error|connection closed|Max retries exceeded|error sending request|IncompleteRead"
        ),
        message="{host} cannot be reached from here",
        hint=_MIRROR,
    ),
    Outage(
        code="no-index",
        pattern=re.compile(r"Failed to fetch|Could not fetch URL|nobody knows whether"),
        message="{host} gives no answer that can be read",
        hint=_ADDRESS,
    ),
)


def why(program: str, spec: PackagesSpec, written: str, log: str = "") -> HpctrainError:
    """The error for what `program` wrote when it failed; `log` is pip's, which knows what it skipped.

    `written` and `log` are without secrets.
    """
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    flat = " ".join(" ".join(lines).split())  # an older uv breaks its lines
    nowhere = bool(_NOWHERE.search(flat))
    skipped = tuple(line for line in _skipped(log) if nowhere or not _CLOSED.search(line))
    certain = "\n".join((*skipped, *(line for line in lines if not line.startswith("WARNING"))))
    notes = tuple(dict.fromkeys((*skipped[-2:], *_last(lines))))
    for outage in OUTAGES:
        if outage.empty and not nowhere:
            continue
        if outage.pattern.search(f"{certain}\n{flat}" if outage.empty else certain):
            host = _host(certain)
            # ~/.netrc knows computers, not ports.
            words = {"host": host, "machine": host.partition(":")[0], "table": spec.technology}
            fields = {"hint": outage.hint.format(**words), "notes": notes, "where": outage.where}
            return outage.error(outage.code, outage.message.format(**words), **fields)
    if damaged := _DAMAGED.search(flat):
        package = next(filter(None, damaged.groups()))
        message = f"the file of {package} that the index gave is no package"
        hint = "put a whole copy of it there: this one was cut, or altered"
        return IntegrityError.of("package-damaged", message, where=PACKAGES, hint=hint, notes=notes)
    if not _UNSOLVED.search(flat):
        return StepFailed.of("tool-failed", f"{program} could not resolve the packages", notes=notes)
    python = f" for Python {spec.python}" if spec.python else ""
    missing = _MISSING.search(flat)
    message = f"the packages do not fit together{python}"
    if missing:
        message = f"no index that was asked has {missing[1].rstrip(',')}{python}"
    return ConfigError.of("no-solution", message, where=PACKAGES, notes=notes)


def _skipped(log: str) -> Iterator[str]:
    """The pages that pip passed over, but for those that an index says it does not have."""
    for line in log.splitlines():
        match = _SKIPPED.search(line)
        if match and not _ABSENT.search(line):
            yield match[0]


def _last(lines: list[str]) -> list[str]:
    return [line for line in lines if "WARNING: Retrying" not in line][-LAST:]


def _host(text: str) -> str:
    from urllib.parse import urlsplit

    match = _URL.search(text)
    address = urlsplit(match[1]) if match else None
    # Not `hostname`: the port tells two servers of one computer apart.
    return address.netloc.rpartition("@")[2] if address else "the package index"
