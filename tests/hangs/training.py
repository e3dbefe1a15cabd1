"""Small trainings with real gloo ranks, forked from one interpreter that has torch: `test_real.py` starts it.

Each line of the input is a case: what is trained, the fault or the slow phase, of which rank, at which step.
Two lines answer it: the ranks' numbers of process, and the code when all are through.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what the first backward pass imports: once, and not a second of CPU in every rank
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hpctrain_job.hangs import pulse


def ddp(model: Any) -> Generator[None, bool, None]:
    """The usual: gradients of a model, all ranks in one group."""
    wrapped = DistributedDataParallel(model, bucket_cap_mb=1)
    while True:
        wrapped(torch.ones(4, 64)).sum().backward()
        if not (yield):
            dist.barrier()


def mesh(model: Any) -> Generator[None, bool, None]:
    """Two axes by hand: a rank waits in both of its groups."""
    world, rank = dist.get_world_size(), dist.get_rank()
    rows = [dist.new_group([n, n + 1]) for n in range(0, world, 2)]
    columns = [dist.new_group(list(range(n, world, 2))) for n in range(2)]
    row, column = rows[rank // 2], columns[rank % 2]
    tensor = torch.ones(64)
    while True:
        dist.all_reduce(tensor, group=row)
        if not (yield):
            dist.all_reduce(tensor[:32], group=column)


def stop(_: float) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def loop(_: float) -> None:
    while True:
        pass


def deaf_loop(_: float) -> None:
    """A loop in C that never gives Python's lock away: the pulse stops too."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def sleep(_: float) -> None:
    time.sleep(1e6)


def leave(_: float) -> None:
    """To the end of the program, before the others."""
    dist.barrier()


def evaluate(seconds: float) -> None:
    _compute(seconds)


def tidy(seconds: float) -> None:
    """An evaluation whose name says nothing."""
    _compute(seconds)


def save(seconds: float) -> None:
    time.sleep(seconds)


def copy(seconds: float) -> None:
    """Bytes that move, in a function whose name says nothing."""
    end = time.monotonic() + seconds
    with Path("/dev/zero").open("rb") as source:
        while time.monotonic() < end:
            source.read(1 << 20)
            time.sleep(0.05)


def nothing(_: float) -> None:
    pass


def _compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.ones(64, 64) @ torch.ones(64, 64)


EVENTS: dict[str, Callable[[float], None]] = {
    f.__name__: f for f in (stop, loop, deaf_loop, sleep, leave, evaluate, tidy, save, copy, nothing)
}


def train(case: dict[str, Any], rank: int) -> None:
    """One rank."""
    dist.init_process_group("gloo", rank=rank, world_size=case["world"])
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
    steps = {"ddp": ddp, "mesh": mesh}[case["layout"]](model)
    next(steps)
    for step in range(case["steps"]):
        has_event = step == case["at"] and (rank == case["rank"] or case["rank"] < 0)
        skips = has_event and case["event"] == "skip"
        if has_event and not skips:
            EVENTS[case["event"]](case["seconds"])
        time.sleep(0.02)
        steps.send(skips)
    dist.barrier()


def forked(case: dict[str, Any]) -> list[int]:
    """The ranks, two on each of the nodes that there would be."""
    return [_forked(partial(_begin, case, rank)) for rank in range(case["world"])]


def _begin(case: dict[str, Any], rank: int) -> None:
    os.environ[pulse.FOLDER] = f"{case['folder']}/pulse{rank // 2}"
    pulse.start(os.environ)
    train(case, rank)
    dist.destroy_process_group()
    time.sleep(1.0)  # the last pulse says that it has left its groups


def supervise(case: dict[str, Any]) -> None:
    """Start the ranks, and end when all are through, or kill them when told to end."""
    pids = forked(case)

    def kill(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, kill)
    print(json.dumps([os.getpid(), *pids]), flush=True)
    while pids:
        pid, _ = os.wait()
        pids.remove(pid)


def _forked(action: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def main() -> None:
    """One case after the other."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        case = json.loads(line)
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(case["port"])}
        _, status = os.waitpid(_forked(partial(supervise, case)), 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    main()
