"""What environments made of an image share: how a base image is named, and what must be visible inside."""

from __future__ import annotations

import re

from attrs import frozen

from hpctrain.plugin import Bind, Cluster, ConfigError, Loc, Pin, locs_in
from hpctrain.toolbox import pinned_value, target_arch

KIND = "image"
"""The kind of an image's pin: its tag, or its path, and a digest."""
OCI = {"x86_64": "amd64", "aarch64": "arm64"}
"""Registries and file names have words of their own for an architecture."""
_REFERENCE = re.compile(
    r"(?:docker://)?(?P<registry>[a-z0-9.-]+\.[a-z]+(?::\d+)?|localhost(?::\d+)?)/"
    r"(?P<repository>[a-z0-9._/-]+)(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?\Z"
)


@frozen(kw_only=True)
class Image:
    """A base image: one in a registry, or a file that lies on the cluster."""

    text: str
    """As the run file says."""
    path: str = ""
    """The file; empty: it is pulled."""
    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""
    """As the run file says or as pinned; empty where only a tag is known."""

    @property
    def name(self) -> str:
        """The front of its file's name: `pytorch-25.06-py3`."""
        last = self.repository.rpartition("/")[2]
        return "-".join(part for part in (last, self.tag) if part)

    @property
    def address(self) -> str:
        """Where it is pulled from; by digest wherever one is known."""
        after = f"@{self.digest}" if self.digest else f":{self.tag or 'latest'}"
        return f"docker://{self.registry}/{self.repository}{after}"

    @property
    def plain(self) -> str:
        """The address of the image as podman writes it, without `docker://`."""
        return self.address.removeprefix("docker://")

    @property
    def key(self) -> str:
        """What decides its content, as far as anybody knows."""
        return self.digest or self.text


def parse(text: str, where: str, pins: tuple[Pin, ...] = ()) -> Image:
    """The image that a run file names; a tag that was pinned has its digest."""
    if text.startswith("/"):
        return Image(text=text, path=text, digest=pinned_value(pins, KIND, text))
    match = _REFERENCE.match(text)
    if match is None:
        key = where.rpartition(".")[2]
        raise ConfigError.of(
            "image",
            f"{text!r} names no image" if text else "nothing says which image the environment stands on",
            where=where,
            hint=f'{key} = "nvcr.io/nvidia/pytorch:25.06-py3"      or the path of a file',
        )
    parts = {key: value or "" for key, value in match.groupdict().items()}
    digest = parts.pop("digest") or pinned_value(pins, KIND, text)
    return Image(text=text, digest=digest, **parts)


def oci(pins: tuple[Pin, ...], cluster: Cluster) -> str:
    """The training nodes' architecture in the registry's words."""
    arch = target_arch(pins, cluster)
    return OCI.get(arch, arch)


def roles(binds: tuple[Bind, ...], cluster: Cluster) -> tuple[Bind, ...]:
    """The binds of every step: those of the fabric lie where modules of several nodes say, and come last."""
    fabric = set(fabric_binds(cluster))
    return tuple(b for b in binds if b not in fabric)


def fabric_binds(cluster: Cluster) -> tuple[Bind, ...]:
    """The host's fabric libraries, for training on several nodes."""
    return tuple(map(Bind.parse, cluster.network.binds))


def folders(binds: tuple[Bind, ...]) -> tuple[Loc, ...]:
    """The roles among binds: a container refuses a folder that nobody made yet."""
    return tuple(dict.fromkeys(loc for b in binds for loc in locs_in(b.source)))
