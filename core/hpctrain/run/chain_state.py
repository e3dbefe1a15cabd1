"""How far the jobs of a chain have come, as a value: most runs have none, and pay for nothing more."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class ChainState:
    """How far the jobs of a step have come."""

    attempts: int
    """How many have begun to train."""
    restarts: int = 0
    """How often one of them began again inside of its allocation."""
    planned: int = 1
    """How many were planned."""
    jobs: tuple[str, ...] = ()
    """Those in the queue, the one that runs included, in their order."""
    training: str = ""
    """The one whose attempt has begun and not ended."""
    submitted: int = 0
    """How many were ever handed over, refused ones too: whether somebody else has done so since."""
    left_s: float = 0.0
    """Seconds of the total that no attempt has used."""
    ended: str = ""
    """Why no further attempt will begin; empty while one may."""
    avoided: tuple[str, ...] = ()
    """Nodes that failed, and on which no further attempt shall run."""
