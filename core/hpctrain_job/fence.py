"""Whether this rank's attempt still is the one that trains: asked before a checkpoint is published.

Where nodes have guards (`hpctrain_job.guards`), an attempt may be given up without its ranks' knowledge.
"""

from __future__ import annotations

import os
from pathlib import Path

from hpctrain_job.files import documents

VARIABLE = "HPC_FENCE"
"""In a rank's environment: the file with the order of the guards and the number of its attempt, with a colon
between."""


class Fenced(RuntimeError):
    """Another attempt trains: what this one writes now would be in its way."""


def check() -> None:
    """Raise where a later attempt was ordered; without guards there is nothing to ask."""
    order, _, attempt = os.environ.get(VARIABLE, "").rpartition(":")
    if not order:
        return
    newest = int(documents.read(Path(order))["attempt"])
    if newest > int(attempt):
        raise Fenced(f"attempt {attempt} was given up, attempt {newest} trains: nothing is published")
