"""This computer: whether it is the cluster that a plan is for, its time, and where it keeps our state."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.model.cluster import Cluster

if TYPE_CHECKING:
    from hpctrain.model.plan import Binding
    from hpctrain.model.words import Loc

_DNS_SECONDS = 1.0


def is_here(cluster: Cluster, host: str | None = None) -> bool:
    """Whether `host`, else a name of this computer, is one of the cluster's; `local` always is."""
    if cluster.name == "local":
        return True
    names = _own_names() if host is None else iter((host,))
    return any(re.search(regex, name) for name in names for regex in cluster.detect)


def _own_names() -> Iterator[str]:
    """The host name, and the full one only for those who did not know the first."""
    yield host_name()
    yield from _full_name()


def host_name() -> str:
    """What this computer calls itself, with or without its domain."""
    return os.uname().nodename


@cache
def _full_name() -> tuple[str, ...]:
    """The name with its domain, unless the name server takes longer than a second."""
    import threading

    names: list[str] = []
    lookup = threading.Thread(target=lambda: names.extend(_names_of(host_name())), daemon=True)
    lookup.start()
    lookup.join(_DNS_SECONDS)
    return tuple(names)


def _names_of(host: str) -> Iterator[str]:
    """What the name service calls `host`. As `socket.getfqdn`, whose module costs as much CPU as a
    third of Python's own start."""
    import _socket

    try:
        name, aliases, _ = _socket.gethostbyaddr(host.encode())  # type: ignore[arg-type]
    except OSError:
        return
    yield from (name, *aliases)


def now() -> str:
    """This moment, as records and plans write it: in UTC as RFC 3339, to the millisecond."""
    moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def state_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/hpctrain`, where things lie that are neither settings nor cache."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the XDG rules: a relative path counts as unset
        state = f"{environ.get('HOME') or Path.home()}/.local/state"
    return Path(state) / "hpctrain"


def is_begun(place: Loc, binding: Binding) -> bool:
    """Whether a name at this place begins like its path."""
    root = binding.roots.get(place.role)
    folder, _, begin = f"{root}/{place.path}".rpartition("/")
    try:
        return isinstance(root, str) and any(name.startswith(begin) for name in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return False
