"""How long a silence may be. Every number is data, with where it comes from.

Measured on 164 runs with real gloo ranks on processors, 4 and 8 of them (ddp, fsdp2, a mesh of two axes): all
of 86 hangs named; of 80 healthy phases three accused, evaluations of rank 0 without a telling name, for
which there is a clause now. The longest pause between two operations of a healthy run was 0.8 s on a loaded
machine. On GPUs nothing of this was measured; what holds there are the public bounds named below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

PHASE_WORDS = (
    "save", "checkpoint", "evaluat", "validat", "compil", "inductor", "dynamo", "triton", "load_state",
    "load_dataset", "from_pretrained", "tokeniz", "init_process_group", "new_group", "generate",
)  # fmt: skip
"""Functions and files of a stack that may take long in good health; not "load": a dataloader may not."""
FIXED = ("broadcast", "all_reduce", "allreduce")
"""Operations whose tensors have one size on all ranks; others may differ in good health."""


@dataclass(frozen=True)
class Thresholds:
    """In seconds; `learned` stretches them by what the run itself has shown."""

    gone: float = 5.0
    """A process that is gone: starters end the others within a second or two, else they wait for ever."""
    suspect: float = 30.0
    """What is certain is said: far above every healthy pause, and before NCCL's watchdog, after 600 s, ends
    the victims and with them the evidence:
    https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group"""
    watch: float = 2.5
    """So long a process is looked at before "it does nothing": a starved machine gives a healthy one some."""
    busy: float = 180.0
    """A rank that computes by itself: data read anew, the garbage of a large heap collected."""
    long: float = 1800.0
    """A phase with a name, rank 0 alone, bytes that move: evaluations and checkpoints take minutes."""
    silent: float = 150.0
    """A node that writes no word: they write once a minute, so two words are missing."""
    young: int = 20
    """Operations before which a run is starting: kernels are compiled and weights loaded, for 10 to 40
    minutes at scale (https://arxiv.org/abs/2509.16293)."""
    suspect_pauses: float = 5.0
    """`suspect` is at least so many times the longest healthy pause of late."""
    busy_pauses: float = 6.0
    long_pauses: float = 3.0
    """`long` is at least so many times the longest phase that was seen."""

    def learned(self, pause: float, phase: float) -> Thresholds:
        """Stretched by the run's own longest pause of late, and its longest pause in a named phase."""
        return replace(
            self,
            suspect=max(self.suspect, self.suspect_pauses * pause),
            busy=max(self.busy, self.busy_pauses * pause),
            long=max(self.long, self.long_pauses * max(pause, phase)),
        )
