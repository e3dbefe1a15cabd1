"""Logins for HTTP: those that stand in an address are sent and never shown, others come from ~/.netrc."""

from __future__ import annotations

import base64
import netrc
import os
import urllib.parse
from pathlib import Path


def separated(url: str) -> tuple[str, str]:
    """The address without its login, and the login as the header Authorization has it ("" without one)."""
    parts = urllib.parse.urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    if not login or parts.scheme not in ("http", "https"):
        return url, ""
    user, _, password = login.partition(":")
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), _basic(user, password)


def bare(url: str) -> str:
    """The address as it may be shown."""
    return separated(url)[0]


def login_for(url: str, index: str = "") -> str:
    """The header for `url`: its own login, that of the index which linked to it, or the one of ~/.netrc."""
    address, url_login = separated(url)
    site, index_login = separated(index)
    is_same_site = urllib.parse.urlsplit(address)[:2] == urllib.parse.urlsplit(site)[:2]
    return (
        url_login
        or (index_login if is_same_site else "")
        or _from_netrc(urllib.parse.urlsplit(address).hostname or "")
    )


def _from_netrc(host: str) -> str:
    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        row = netrc.netrc(path).hosts.get(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return _basic(urllib.parse.quote(row[0]), urllib.parse.quote(row[2] or "")) if row else ""


def _basic(user: str, password: str) -> str:
    text = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password)}"
    return "Basic " + base64.b64encode(text.encode()).decode()
