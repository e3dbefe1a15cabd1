"""A port for the ranks of a test."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
