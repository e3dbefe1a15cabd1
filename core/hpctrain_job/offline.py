"""Make the network fail, clearly, for every Python of one prefix.

A build that downloads behind our back works where it was tried and fails, or builds something else,
on a compute node. `install` puts a line into the prefix which every Python of it reads at its start.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

LOG = "HPC_ASKED"
"""The variable that names the file in which each refused address is noted."""
NOWHERE = "no-network-while-compiling.invalid"
"""The proxy that compile steps are given: what looks past Python (curl, git, cargo) fails with this name."""
LOCAL = ("127.", "::1", "localhost", "0.0.0.0")  # noqa: S104  (compared, never listened on)
EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")


class NoNetwork(OSError):
    """Something asked for the network where there is none."""


def forbid() -> None:
    """Refuse every connection of this process to another computer, from now on."""
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event not in EVENTS:
        return
    address = args[-1] if event in ("socket.connect", "socket.sendto") else args[:2]
    host = str(address[0]) if isinstance(address, tuple) and address else ""
    if not host or host.startswith(LOCAL):
        return
    where = ":".join(str(part) for part in address[:2] if part)
    if name := os.environ.get(LOG):
        with open(name, "a", encoding="utf-8") as file:  # noqa: PTH123  (pathlib may not be importable yet)
            file.write(f"{where}\n")
    raise NoNetwork(f"hpctrain: compiling has no network, and {where} was requested")


def install() -> None:
    """Let every Python of the running one's prefix forbid itself the network."""
    line = (
        "import os, sys; os.environ.get('HPC_ASKED') and __import__('hpctrain_job.offline').offline.forbid()"
    )
    Path(sysconfig.get_path("purelib"), "hpctrain-offline.pth").write_text(line + "\n")
