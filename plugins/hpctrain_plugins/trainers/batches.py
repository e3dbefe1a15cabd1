"""`[train] global_batch_size`: the rows of one step, shared out among the ranks of any machine."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from hpctrain.plugin import Problem, RunSpec

WHERE = "train.global_batch_size"


@frozen
class Share:
    """What one rank does of a step."""

    micro: int
    """Rows of one pass."""
    passes: int
    """Passes of one step."""


def share(run: RunSpec, micro: int, copies: int) -> Share | None:
    """The share of each of `copies` of the model, with passes of at most `micro` rows; None where the run
    file does not say the size of a step, or it cannot be shared out."""
    rows = run.train.global_batch_size
    if rows is None or copies < 1 or rows % copies:
        return None
    rank_rows = rows // copies
    largest = next(size for size in range(min(max(1, micro), rank_rows), 0, -1) if rank_rows % size == 0)
    return Share(micro=largest, passes=rank_rows // largest)


def problems(run: RunSpec, copies: int, *, passes: int = 0, key: str = "") -> Iterator[Problem]:
    """A size that so many copies cannot share, and `passes` that another key fixes."""
    rows = run.train.global_batch_size
    if rows is None or copies < 1:
        return
    if rows % copies:
        fits = sorted({max(copies, rows // copies * copies), (rows // copies + 1) * copies})
        yield Problem(
            code="global-batch",
            message=f"{rows} rows a step cannot be shared out among {copies} copies of the model",
            where=WHERE,
            hint=f"global_batch_size = {fits[-1]}      (or {_divisors(rows, copies)} copies)",
        )
    elif passes > 1:
        yield Problem(
            code="global-batch",
            message=f"global_batch_size decides the passes of a step, and {key} is {passes}",
            where=key,
            hint=f"remove {key.rpartition('.')[2]}",
        )


def _divisors(rows: int, copies: int) -> int:
    """The most copies, not above `copies`, that share the rows evenly."""
    return next(count for count in range(min(rows, copies), 0, -1) if rows % count == 0)
