"""The assets that are on this machine: beside the run file, at their place, or brought by another run."""

from __future__ import annotations

from pathlib import Path

from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import Asset
from hpctrain.run.prepare.survey import path_of, standing
from hpctrain_job.files import trust


def present(plan: Plan, base: Path, binding: Binding | None, *, on_cluster: bool) -> dict[str, Path]:
    """Asset -> where it lies; without a binding those that other runs brought are not looked for."""
    paths: dict[str, Path] = {}
    for name, asset in plan.run.assets.items():
        path = _own_path(asset, base, on_cluster=on_cluster)
        if path is not None and path.exists():
            paths[name] = path
    return paths | (_brought(plan, binding) if on_cluster and binding is not None else {})


def _own_path(asset: Asset, base: Path, *, on_cluster: bool) -> Path | None:
    """A path of the run file; an absolute one is a place on the cluster."""
    if not asset.path:
        return None
    if asset.path.startswith(("/", "~")):
        return Path(asset.path).expanduser() if on_cluster else None
    return base / asset.path


def _brought(plan: Plan, binding: Binding) -> dict[str, Path]:
    existing = {step for step, (_, j) in standing(plan, binding).items() if j.verdict is trust.Verdict.EXISTS}
    paths = {s.name: path_of(s.step.makes.loc, binding) for s in plan.steps if s.step.makes}
    return {name: path for name, path in paths.items() if path and name in existing & plan.run.assets.keys()}
