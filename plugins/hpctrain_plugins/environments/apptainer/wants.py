"""What a run asks of Apptainer, read once for locking, building and entering alike."""

from __future__ import annotations

import attrs

from hpctrain.defaults import names
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.run import Package, RunSpec
from hpctrain.model.step import Artifact, Pin
from hpctrain.model.words import Word
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.apptainer import Options
from hpctrain_plugins.environments.image import Image, known
from hpctrain_plugins.environments.image.known import Has
from hpctrain_plugins.environments.wheels import options
from hpctrain_plugins.environments.wheels import wants as wanting
from hpctrain_plugins.environments.wheels.wants import Wants

WHERE = "environment.apptainer.image"
INSIDE = "/user-software"
ENV, IMAGES = "env", "images"


@frozen(kw_only=True)
class Asked:
    """The image, the packages, and what is known of both."""

    options: Options
    image: Image
    wants: Wants
    pins: tuple[Pin, ...]
    arch: str
    oci: str
    has: Has | None
    """What the image is known to have."""

    @property
    def pypi(self) -> tuple[Pin, ...]:
        """The packages at the versions that were pinned."""
        return tuple(p for p in self.pins if p.kind == "pypi")

    @property
    def file(self) -> Word:
        """Where the image lies."""
        return self.image.path or self.pulled.loc

    @property
    def pulled(self) -> Artifact:
        """The image as a file, by its digest."""
        return Artifact(
            name=self.image.name,
            role=IMAGES,
            inputs={"image": self.image.key},
            arch=self.arch,
            separator="_",
            suffix=f"_{self.oci}.sif",
        )

    @property
    def own(self) -> tuple[Package, ...]:
        """Code by path or git, whether it is compiled or only copied."""
        return (*self.wants.own, *(s.package for s in self.wants.compile if not s.version))

    @property
    def listed(self) -> Artifact:
        """What the image has, as it says itself."""
        return Artifact(
            name="packages",
            role=IMAGES,
            inputs={"image": self.image.key},
            arch=self.arch,
            suffix=".txt",
        )

    @property
    def overlay(self) -> Artifact | None:
        """The packages as one file; None where the image alone is enough."""
        if not (self.wants.packages or self.wants.own or self.wants.compile):
            return None
        git = {names.git(p.git, p.rev) for p in self.own if p.git}
        mine = tuple(p for p in self.pins if p.kind == "git" and p.name in git)
        return Artifact(
            name=self.options.name,
            role=ENV,
            inputs={
                "image": self.image.key,
                "at": INSIDE,
                "packages": sorted(self.wants.wheels),
                "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in self.own],
                "compile": [[s.name, s.version, attrs.asdict(s.built)] for s in self.wants.compile],
                "overlay": [self.options.overlay, self.options.size_mb * (self.options.overlay == "ext3")],
                "from": [self.options.index_url, *self.options.find_links],
            },
            arch=self.arch,
            pins=(*self.pypi, *mine),
            separator="_",
            suffix=f"_{self.oci}.{'img' if self.options.overlay == 'ext3' else 'sqsh'}",
        )


def read(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Asked:
    """The wants of a run."""
    own: Options = run.environment.options or Options()
    stands_on = image.parse(own.image, WHERE, pins)
    return Asked(
        options=own,
        image=stands_on,
        wants=wanting.read(as_venv(run, own), cluster),
        pins=pins,
        arch=names.arch(pins, cluster),
        oci=image.oci(pins, cluster),
        has=known.has(run, own.has, stands_on, "environment.apptainer.has"),
    )


def as_venv(run: RunSpec, own: Options) -> RunSpec:
    """The same run for a venv: its packages are resolved and installed as a venv's are."""
    said = options.Options(
        index_url=own.index_url, find_links=own.find_links, glibc=own.glibc, builds=own.builds
    )
    return attrs.evolve(run, environment=attrs.evolve(run.environment, options=said))
