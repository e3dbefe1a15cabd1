"""Submit one step and die on the way: run as `killed_driver.py FOLDER WHEN`.

WHEN is `never`, `count` (say how many places there are), `at:K` (at the K-th write, rename, new file
or program) or `after:SECONDS` (that long after the first program was started).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpctrain.run.steps.submit import resume_submission, submit_step
from hpctrain_plugins.schedulers import local, pbs, slurm
from tests.schedulers import build
from tests.schedulers.site import QUICK, Site

AUDITED = ("open", "os.rename", "os.mkdir", "os.link", "os.remove", "subprocess.Popen", "os.posix_spawn")


class Death:
    """Counts the places where a kill would hurt, and dies at the chosen one."""

    def __init__(self, when: str) -> None:
        kind, _, value = when.partition(":")
        self.seen = 0
        self.at = int(value) if kind == "at" else 0
        self.after = float(value) if kind == "after" else None
        for name in ("write", "fsync", "replace"):
            setattr(os, name, self.around(getattr(os, name)))
        sys.addaudithook(self.hook)

    def here(self) -> None:
        """One more place."""
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` with a place before and a place behind it."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.here()
            try:
                return function(*args, **kwargs)
            finally:
                self.here()

        return wrapped

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in AUDITED or (event == "open" and not (args[2] or 0) & (os.O_WRONLY | os.O_RDWR)):
            return
        self.here()
        if event == "subprocess.Popen" and self.after is not None:
            kill = threading.Timer(self.after, os.kill, (os.getpid(), signal.SIGKILL))
            kill.daemon = True
            kill.start()


def main(scheduler: str, folder: str, when: str) -> None:
    """Finish what an earlier call began, or begin."""
    module = {"slurm": slurm, "local": local, "pbs": pbs}[scheduler]
    site = Site(module, Path(folder), {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]})
    line = 'echo "$HPC_JOB" >>ran'
    plan = build.plan(build.step(line), ask=("-h",) if module is pbs else ("--hold",), scheduler=scheduler)
    order = site.order(plan)
    death = Death(when)
    record = site.record()
    job = resume_submission(order, record, site.submit, site.query, QUICK) or submit_step(
        order, record, site.submit, site.query, QUICK
    )
    print(death.seen if when == "count" else job)


if __name__ == "__main__":
    main(*sys.argv[1:])
