"""The conformance kit, with answers from memory of the words of Flux's programs; no Flux was asked."""

from typing import ClassVar

from hpctrain.testing import Answer, SchedulerConformance

ID = "ƒ2oCkYNT"
DOWN = Answer(err="flux-jobs: ERROR: Unable to connect to Flux: broker socket not found\n", code=1)
REFUSED = "flux-batch: ERROR: [Errno 22] Invalid queue 'nowhere' specified\n"


def listed(state: str) -> dict[str, Answer]:
    return {"flux": Answer(f"{{id}} hpc-{{tag}} {state} pbatch 2\n")}


class TestFlux(SchedulerConformance):
    scheduler, job = "flux", ID
    queue_options = ("--queue=pbatch",)
    answers: ClassVar = {
        "accepted": {"flux": Answer(f"{ID}\n")},
        "refused": {"flux": Answer(err=REFUSED, code=1)},
        "lost": {"flux": Answer(err="flux-batch: ERROR: timed out\n", code=1)},
        "queued": listed("S"),
        "running": listed("R"),
        "done": listed("CD"),
        "failed": listed("F"),
        "cancelled": listed("CA"),
        "forgotten": {"flux": Answer()},
        "silent": {"flux": DOWN},
        "over": {"flux": Answer(err=f"flux-cancel: ERROR: {ID}: job is inactive\n", code=1)},
    }
