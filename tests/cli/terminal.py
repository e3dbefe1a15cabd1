"""A fake terminal: what a command shows to somebody who sits in front of it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from tests.e2e.product import Product
from tests.patience import PATIENCE


def on_terminal(user: Product, *args: str, typed: str = "", columns: int = 80, **environ: str) -> str:
    """All that a command writes to a terminal of this width, stdout and stderr as one."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        user.argv(*args), cwd=user.folder, env=user.environment | environ,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    end = time.monotonic() + 60 * PATIENCE
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
        process.wait(10 * PATIENCE)
    finally:
        os.close(ours)
        process.kill()
        process.wait(10 * PATIENCE)
    return shown.decode().replace("\r\n", "\n")
