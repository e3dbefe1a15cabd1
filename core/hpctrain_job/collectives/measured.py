"""What a node's processes measure together, with the best engine that their Python has.

`python -m hpctrain_job.collectives.measured` is one process of all that HPC_RANK and HPC_WORLD count, prints
one JSON document, and says in it what went wrong.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from typing import Any

from hpctrain_job.collectives import ring
from hpctrain_job.collectives.place import SECONDS, Place

APART = 7
"""Ports behind HPC_PORT, which the training will use."""


def has_torch() -> bool:
    """Whether this Python has it, without the seconds of its import."""
    return find_spec("torch") is not None


def measured(place: Place, gpu: int | None = None) -> dict[str, Any]:
    """The operations with their values and times, or the sentence of what went wrong."""
    try:
        if not has_torch():
            return ring.measured(place)
        from hpctrain_job.collectives import group

        return group.measured(place, gpu)
    except Exception as error:  # libraries raise anything, and each of it is the finding
        return {"fault": (str(error).strip() or type(error).__name__).splitlines()[0][:300]}


def gigabytes_per_second(row: dict[str, Any], world: int) -> float:
    """The bandwidth that a link of an all-reduce had: what each process sends of it, over the time."""
    return 2 * (world - 1) / world * row["bytes"] / max(row["seconds"], 1e-9) / 1e9 if world else 0.0


def main() -> None:
    """One process of a job."""
    environ = os.environ
    place = Place(
        rank=int(environ["HPC_RANK"]),
        world=int(environ["HPC_WORLD"]),
        head=environ["HPC_HEAD"],
        port=int(environ["HPC_PORT"]) + APART,
        seconds=float(environ.get("HPC_PATIENCE", SECONDS)),
    )
    has_gpus = has_torch() and _gpus() > 0
    document = measured(place, 0 if has_gpus else None)
    print(json.dumps({"world": place.world, "rank": place.rank, **document}))


def _gpus() -> int:
    from hpctrain_job.collectives import group

    return group.gpus()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
