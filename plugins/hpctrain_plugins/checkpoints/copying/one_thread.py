"""numpy's BLAS without threads of its own: on small products they only wait for each other."""

from __future__ import annotations

import os
import sys

_NAMES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def ask_for() -> None:
    """Say so before numpy is imported, which reads it once; what the user says stays."""
    if "numpy" not in sys.modules:
        for name in _NAMES:
            os.environ.setdefault(name, "1")
