"""What is wrong with a plan that stands on an image, as far as its facts say."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Cluster, Plan, Problem, RunSpec
from hpctrain_plugins.environments.image.known_images import Has

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


def unknown(plan: Plan, image: str, where: str) -> Iterator[Problem]:
    """An image that must be asked first: until then nothing on top of it can be pinned."""
    listed = next((s.step.makes for s in plan.steps if s.name == "inspect" and s.step.makes), None)
    if listed is not None:
        yield Problem(
            code="image-unknown",
            message=f"it is not known what {image} has: a short job lists it, and packages cannot be pinned",
            where=where,
            hint=f'copy {listed.filename} beside the run file, and say\nhas = "{listed.filename}"',
            fatal=False,
        )


def lacking(run: RunSpec, has: Has) -> Iterator[Problem]:
    """What `lock` would refuse of the packages that are added, whatever an index says."""
    from hpctrain_plugins.environments.wheels import refused

    yield from refused.of_packages(run)
    python = run.environment.python
    if python and python != has.python:
        yield Problem(
            code="image-python",
            message=f"the image has Python {has.python}, not {python}",
            where="environment.python",
            hint="leave `python` out: an image brings its own",
        )
