"""What this machine says now: which artifacts exist and how much space is free. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.errors import Problem
from hpctrain.model.plan import Binding, CodeState, Plan, Refusal, Survey
from hpctrain.model.words import Loc
from hpctrain.plan import chain
from hpctrain.run.this_computer import is_begun, is_here, now, state_folder

if TYPE_CHECKING:
    from hpctrain_job.files import trust  # a plan elsewhere looks at nothing


def survey(
    plan: Plan,
    binding: Binding,
    *,
    on_cluster: bool | None = None,
    code: CodeState | None = None,
    environ: Mapping[str, str] | None = None,
) -> Survey:
    """Look at what `plan` needs; off its cluster nothing is looked at, and of it only the `code` is report.

    What others published is compared with its manifest; the user's state folder remembers what was whole.
    """
    is_on_cluster = is_here(plan.cluster) if on_cluster is None else on_cluster
    if not is_on_cluster:
        return Survey(is_on_cluster=False, code=code, at=now())
    from hpctrain.run.prepare.earlier import newest  # a plan elsewhere looks at nothing
    from hpctrain_job.files import trust  # a plan elsewhere looks at nothing

    state = state_folder(environ) if environ is not None else None
    judgements = {
        step: (role, _compared(judged, state)) for step, (role, judged) in standing(plan, binding).items()
    }
    avoided, bad_nodes = _bad_nodes(plan, binding)
    return Survey(
        is_on_cluster=True,
        avoided=avoided,
        bad_nodes=bad_nodes,
        artifact_exists={step: j.verdict is trust.Verdict.EXISTS for step, (_, j) in judgements.items()},
        refusals={
            step: Refusal(reason=f"{j.path} {j.reason}", owner=j.owner, role=role, is_foreign=j.is_foreign)
            for step, (role, j) in judgements.items()
            if j.verdict is trust.Verdict.REFUSED
        },
        owners={
            step: j.owner
            for step, (_, j) in judgements.items()
            if j.verdict is trust.Verdict.EXISTS and j.is_foreign
        },
        free_gb=_free(binding),
        code=code,
        earlier=newest(plan, binding),
        at=now(),
    )


def _bad_nodes(plan: Plan, binding: Binding) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The nodes that the training stays away from, with the reasons, and those that are too many for that."""
    train = plan.step_named(chain.TRAIN)
    place = chain.bad_nodes_place(plan.cluster)
    if train is None or train.here or place is None or not is_begun(place, binding):
        return {}, ()
    from hpctrain.run import bad_nodes  # most users know of none

    entries = bad_nodes.report_at(bad_nodes.place_of(plan.cluster, binding)).nodes
    most = chain.most_avoided(plan, train.step.launch.job_nodes)
    reasons = {entry.node: bad_nodes.words(entry) for entry in entries[:most]}
    return reasons, tuple(entry.node for entry in entries[most:])


def path_of(loc: Loc, binding: Binding) -> Path | None:
    """Where `loc` lies on this machine; None when that is known in the job only."""
    root = binding.roots.get(loc.role)
    return Path(root, loc.path) if isinstance(root, str) else None


def untrusted(plan: Plan, survey: Survey) -> Iterator[Problem]:
    """What stands where a step would publish and is not used: nothing is queued that would end there."""
    for step, refusal in survey.refusals.items():
        table = f"[cluster.{plan.cluster.name}.storage.{refusal.role}]"
        accept = f'{table} owners = ["{refusal.owner}"]      (in settings, if you trust that user\'s code)'
        yield Problem(
            code="not-trusted",
            message=f"{refusal.reason}; step {step} neither uses nor replaces it",
            where=f"storage.{refusal.role}",
            hint=accept if refusal.is_foreign else "hpctrain help not-trusted",
            notes=(
                f'or your own place, in settings: [cluster.{plan.cluster.name}] {refusal.role} = "/path"',
            ),
        )


def closed(plan: Plan, binding: Binding, survey: Survey) -> Iterator[Problem]:
    """Folders of this run that this user may not make: with the key that moves each."""
    roles = {"runs", *({"checkpoints"} if plan.train else ())}
    missing = (s.step.makes for s in plan.steps if not survey.artifact_exists.get(s.name))
    roles |= {artifact.role for artifact in missing if artifact}
    account = binding.account or plan.run.resources.account
    for role in sorted(roles):
        root, storage = binding.roots.get(role), plan.cluster.storage.get(role)
        if not isinstance(root, str) or storage is None or storage.writable or storage.node_local:
            continue
        place = _existing(Path(root))
        if os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            continue
        yield Problem(
            code="closed-folder",
            message=f"{role} of {plan.cluster.name} lie in {root}, and you may not write to {place}",
            where=f"storage.{role}",
            hint=f'[cluster.{plan.cluster.name}] {role} = "/path"      (in settings)'
            + (
                ", or another --account" if "{account}" in storage.path or "{project}" in storage.path else ""
            ),
            notes=(f"the account is {account}",) if account else (),
        )


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest above it that is there."""
    return next(folder for folder in (path, *path.parents) if os.path.lexists(folder))


def standing(plan: Plan, binding: Binding) -> dict[str, tuple[str, trust.Judgement]]:
    """Step -> the role in which its artifact lies, and what stands there; no sums are compared."""
    from hpctrain.render import shell  # a plan elsewhere looks at nothing
    from hpctrain_job.files import trust  # a plan elsewhere looks at nothing

    judgements = {}
    for planned in plan.steps:
        if planned.step.makes:
            role = planned.step.makes.role
            link = path_of(planned.step.makes.loc, binding)
            missing = trust.Judgement(trust.Verdict.MISSING)
            accepted = trust.Accepted(shell.owners(plan.cluster, role, binding))
            judgements[planned.name] = (role, trust.artifact(str(link), accepted) if link else missing)
    return judgements


def _compared(judged: trust.Judgement, state: Path | None) -> trust.Judgement:
    """The judgement of somebody else's artifact, with what its manifest says of its files."""
    from hpctrain_job.files import trust  # a plan elsewhere looks at nothing

    if judged.verdict is not trust.Verdict.EXISTS or not judged.is_foreign:
        return judged
    from hpctrain.run.artifacts.comparing import damage  # most plans use nobody else's

    file = damage(Path(judged.path), state)
    if not file:
        return judged
    reason = f"is damaged: {file} is not what its manifest says"
    return trust.Judgement(trust.Verdict.REFUSED, reason, judged.path, judged.owner)


def _free(binding: Binding) -> dict[str, float]:
    roots = {role: root for role, root in binding.roots.items() if isinstance(root, str)}
    free = {role: _free_gb(Path(root)) for role, root in roots.items()}
    return {role: gigabytes for role, gigabytes in free.items() if gigabytes is not None}


def _free_gb(path: Path) -> float | None:
    """Free space where `path` is or will be made, in decimal gigabytes."""
    for folder in (path, *path.parents):
        try:
            usage = os.statvfs(folder)
        except OSError:
            continue
        return usage.f_bavail * usage.f_frsize / 1e9
    return None
