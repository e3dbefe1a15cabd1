"""What known base images already have: dated, by the digest of one architecture's manifest.

Only what decides a resolution stands here. An image that is not here is asked itself, in a short job.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from hpctrain.plugin import ConfigError, RunSpec
from hpctrain_plugins.environments.image import Image


@frozen(kw_only=True)
class Has:
    """The Python of an image and the packages that must not be installed again."""

    python: str
    """`3.12`."""
    packages: Mapping[str, str]
    """Version by distribution."""
    image: str = ""
    """The tag, for a plan before `lock` asked for its digest."""
    checked: str = ""
    """The day on which somebody looked."""
    source: str = ""
    """Where; a build checks each of them in the image before anything is installed."""


KNOWN_IMAGES: Mapping[str, Has] = {
    "sha256:6d46ebd64cfbc74c84e11678c0c5ae298ca97c26171c17a23fd04d23fec5123e": Has(
        image="nvcr.io/nvidia/pytorch:25.06-py3",  # for arm64
        python="3.12",
        packages={"torch": "2.8.0a0+5228986c39.nv25.6"},
        checked="2026-11-20",
        source="NVIDIA's release notes 25.06; digest and version as two public build files record them",
    ),
}


def has(run: RunSpec, file: str, stands_on: Image, where: str) -> Has | None:
    """What the image is known to have: the user's list of it, else what is known of its digest."""
    if not file:
        return find(stands_on.digest, stands_on.text)
    try:
        return read(run.texts.get(file, ""))
    except ValueError as error:
        raise ConfigError.of(
            "image-list",
            f"{file}: {error}",
            where=where,
            hint="the file that the step inspect made, as it is",
        ) from None


def listed(has: Has) -> tuple[str, ...]:
    """What an image has, as lines of requirements that pip compares with the image."""
    return tuple(f"{name}=={version}" for name, version in sorted(has.packages.items()))


def find(digest: str, image: str) -> Has | None:
    """What is known of a digest; of a tag while nobody asked for its digest."""
    if digest:
        return KNOWN_IMAGES.get(digest)
    return next((has for has in KNOWN_IMAGES.values() if has.image == image.removeprefix("docker://")), None)


def read(text: str) -> Has:
    """What `python -m hpctrain_job.packages` printed inside an image."""
    head, *lines = text.splitlines() or [""]
    if not head.startswith("# python "):
        raise ValueError("the list does not start with the image's Python")
    rows = dict(line.split("==", 1) for line in lines if "==" in line)
    return Has(python=head.split()[2], packages=rows, source="the image itself")
