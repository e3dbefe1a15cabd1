"""Collectives of torch: NCCL or RCCL between GPUs, gloo between processors. Every value is checked.

A rank sends its number and one more, whole numbers that any order of additions gives exactly.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from hpctrain_job.collectives.place import Place

torch: Any = import_module("torch")
"""The environment's: who has none does not come here."""
distributed: Any = import_module("torch.distributed")
COUNTS = {"cpu": 2**20, "cuda": 2**24}
"""Numbers of four bytes in a collective: 4 MB, 64 MB."""
ROWS = {"cpu": 512, "cuda": 8192}
"""Of the matrices of a product."""
ROUNDS = 5
_PERIOD = 8
Device = Any
Run = Callable[[Place, Device, int], Callable[[], bool]]
"""An operation, which gives back what checks its values: checking is no part of its time."""
_UNOFFERED = ("does not support", "not support", "not implemented", "no backend")


def measured(place: Place, gpu: int | None) -> dict[str, Any]:
    """Operation -> whether its values were right, and how long it took."""
    device = _device(gpu)
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(
        backend,
        init_method=f"tcp://{place.head}:{place.port}",
        rank=place.rank,
        world_size=place.world,
        timeout=datetime.timedelta(seconds=place.seconds),
    )
    try:
        operations = {name: row for name, run in _OPERATIONS.items() if (row := _row(place, device, run))}
    finally:
        distributed.destroy_process_group()
    return {"engine": _library(backend), "device": device.type, "operations": operations}


def product(gpu: int | None) -> dict[str, Any]:
    """A product of matrices whose result is known, and how long it took at best."""
    device = _device(gpu)
    rows = ROWS[device.type]
    index = torch.arange(rows, device=device)
    left = ((index[:, None] * 7 + index * 3) % _PERIOD).to(torch.bfloat16 if gpu is not None else torch.float)
    right = ((index[:, None] * 5 + index) % _PERIOD).to(left.dtype)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    times = []
    for _ in range(ROUNDS):
        began = _now(device)
        result = left @ right
        times.append(_now(device) - began)
    # both repeat with a small period, so few numbers are all of the result; they are exact in four bytes
    few = left[:_PERIOD].double().cpu() @ right[:, :_PERIOD].double().cpu()
    expected = few.to(result.dtype).to(device).repeat(rows // _PERIOD, rows // _PERIOD)
    return {"right": bool(torch.equal(result, expected)), "seconds": min(times)}


def gpus() -> int:
    """How many torch sees."""
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def _row(place: Place, device: Device, run: Run) -> dict[str, Any] | None:
    """None where the library does not offer it."""
    count = COUNTS[device.type] // place.world * place.world
    times, is_right = [], True
    try:
        for _ in range(ROUNDS):
            distributed.barrier()
            began = _now(device)
            check = run(place, device, count)
            times.append(_now(device) - began)
            is_right = check() and is_right
    except RuntimeError as error:  # what is not implemented is one, too: only that is passed over
        if any(word in str(error) for word in _UNOFFERED):
            return None
        raise
    return {"right": is_right, "seconds": min(times), "bytes": 4 * count}


def _all_reduce(place: Place, device: Device, count: int) -> Callable[[], bool]:
    values = torch.full((count,), float(place.rank + 1), device=device)
    distributed.all_reduce(values)
    return lambda: _is_all(values, place.world * (place.world + 1) / 2)


def _all_gather(place: Place, device: Device, count: int) -> Callable[[], bool]:
    part = torch.full((count // place.world,), float(place.rank + 1), device=device)
    parts = [torch.zeros_like(part) for _ in range(place.world)]
    distributed.all_gather(parts, part)
    return lambda: all(_is_all(values, rank + 1) for rank, values in enumerate(parts))


def _reduce_scatter(place: Place, device: Device, count: int) -> Callable[[], bool]:
    values = torch.full((count,), float(place.rank + 1), device=device)
    part = torch.zeros(count // place.world, device=device)
    distributed.reduce_scatter_tensor(part, values)
    return lambda: _is_all(part, place.world * (place.world + 1) / 2)


def _all_to_all(place: Place, device: Device, count: int) -> Callable[[], bool]:
    part = count // place.world
    values = torch.full((count,), float(place.rank + 1), device=device)
    arrived = torch.zeros_like(values)
    distributed.all_to_all_single(arrived, values)
    return lambda: all(
        _is_all(arrived[part * rank : part * (rank + 1)], rank + 1) for rank in range(place.world)
    )


def _is_all(values: Any, number: float) -> bool:
    return bool((values == number).all())


def _device(gpu: int | None) -> Device:
    if gpu is None:
        return torch.device("cpu")
    torch.cuda.set_device(gpu)
    return torch.device("cuda", gpu)


def _now(device: Device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _library(backend: str) -> str:
    if backend == "gloo":
        return "gloo"
    version = ".".join(map(str, torch.cuda.nccl.version()))
    return f"{'RCCL' if torch.version.hip else 'NCCL'} {version}"


_OPERATIONS: dict[str, Run] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}
