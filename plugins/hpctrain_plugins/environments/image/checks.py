"""What is wrong with a plan that stands on an image, as far as its facts say."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Cluster, Plan, Problem, RunSpec
from hpctrain_job.listing import Listing, normal

HOME = ("~", "{home}", "${HOME}")
ROLES = frozenset({"env", "images"})


def home(cluster: Cluster, plan: Plan) -> Iterator[Problem]:
    """Images and overlays are as large as the whole quota of a home directory."""
    home = cluster.storage.get("home")
    inside = tuple(f"{start}/" for start in (*HOME, *((home.path,) if home else ())))
    roles = {s.step.makes.role for s in plan.steps if s.step.makes}
    for role in sorted(roles & ROLES):
        storage = cluster.storage.get(role)
        if storage and f"{storage.path}/".startswith(inside):
            quota = f" of {home.quota_gb:g} GB" if home and home.quota_gb else ""
            yield Problem(
                code="home-target",
                message=f"{storage.path} lies in the home directory{quota}: images and overlays fill it",
                where=f"storage.{role}.path",
                hint="a folder of the project, which its members share",
            )


def unknown(plan: Plan, image: str, replaced: tuple[str, ...]) -> Iterator[Problem]:
    """An image that must be asked first: until then nothing on top of it can be pinned."""
    listed = next((s.step.makes for s in plan.steps if s.name == "inspect" and s.step.makes), None)
    if listed is not None:
        but = f" but for {', '.join(replaced)}" if replaced else ""
        yield Problem(
            code="image-unknown",
            message=f"it is not known what {image} has: the step inspect asks it, pip keeps all of "
            f"that{but}, and packages are not pinned",
            hint="hpctrain lock      (on the cluster, when inspect has ended)",
            notes=(f'elsewhere: copy {listed.filename} beside the run file, and has = "{listed.filename}"',),
            fatal=False,
        )


def replacing(
    has: Listing, image: str, replaced: tuple[str, ...], named: tuple[str, ...], where: str
) -> Iterator[Problem]:
    """What of the image is replaced, and names that are not in it."""
    rows = [f"{name} {has.packages[name]}" for name in replaced if name in has.packages]
    file = has.facts.get("constraint-file", "")
    if rows:
        yield Problem(
            code="image-replaced",
            message=f"of what {image} has, the run replaces {', '.join(rows)}",
            notes=(
                f"the other {len(has.packages) - len(rows)} packages stay as they are",
                *((f"its constraint file ({file}) does not count for what is replaced",) if file else ()),
            ),
            fatal=False,
        )
    for name in named:
        if normal(name) not in has.packages:
            yield Problem(
                code="image-replace",
                message=f"{image} has no {name}, which is to be replaced",
                where=where,
                hint="leave it out of `replace`",
                fatal=False,
            )


def lacking(run: RunSpec, has: Listing) -> Iterator[Problem]:
    """What `lock` would refuse of the packages that are added, whatever an index says."""
    from hpctrain_plugins.environments.wheels import refused  # most images get no packages

    yield from refused.of_packages(run)
    python = run.environment.python
    if python and python != has.python:
        yield Problem(
            code="image-python",
            message=f"the image has Python {has.python}, not {python}",
            where="environment.python",
            hint="leave `python` out: an image brings its own",
        )
