"""SHA-256 without `hashlib`, which loads OpenSSL and costs a plan as much as a quarter of Python's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:  # where `random` finds its own: Python's lean modules, if it was built with them
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

__all__ = ["sha256"]
