"""What this machine says now: which artefacts exist and how much space is free. Reads only."""

from __future__ import annotations

import os
from pathlib import Path

from hpctrain.model.job import JobState
from hpctrain.model.plan import Binding, Plan, Survey
from hpctrain.model.words import Loc
from hpctrain.run.clock import now
from hpctrain.run.here import is_here


def survey(
    plan: Plan,
    binding: Binding,
    *,
    jobs: tuple[JobState, ...] = (),
    here: bool | None = None,
) -> Survey:
    """Look at what `plan` needs; off its cluster nothing is looked at and nothing is known."""
    there = is_here(plan.cluster) if here is None else here
    if not there:
        return Survey(there=False, jobs=jobs, at=now())
    return Survey(there=True, made=_made(plan, binding), free_gb=_free(binding), jobs=jobs, at=now())


def path_of(loc: Loc, binding: Binding) -> Path | None:
    """Where `loc` lies on this machine; None when that is known in the job only."""
    root = binding.roots.get(loc.role)
    return Path(root, loc.path) if isinstance(root, str) else None


def _made(plan: Plan, binding: Binding) -> dict[str, bool]:
    """Step -> its link resolves, which is what "exists" means for everything we publish."""
    made = {}
    for planned in plan.steps:
        if planned.step.makes:
            link = path_of(planned.step.makes.loc, binding)
            made[planned.name] = link is not None and link.is_symlink() and link.exists()
    return made


def _free(binding: Binding) -> dict[str, float]:
    roots = {role: root for role, root in binding.roots.items() if isinstance(root, str)}
    free = {role: _free_gb(Path(root)) for role, root in roots.items()}
    return {role: gigabytes for role, gigabytes in free.items() if gigabytes is not None}


def _free_gb(path: Path) -> float | None:
    """Free space where `path` is or will be made, in decimal gigabytes."""
    for folder in (path, *path.parents):
        try:
            said = os.statvfs(folder)
        except OSError:
            continue
        return said.f_bavail * said.f_frsize / 1e9
    return None
