"""What a run asks of Apptainer, read once for locking, building and entering alike."""

from __future__ import annotations

import attrs
from attrs import frozen

from hpctrain.plugin import Artifact, Cluster, Cmd, Package, Pin, RunSpec, Word
from hpctrain.toolbox import target_arch
from hpctrain_job.listing import Listing
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.apptainer.options import Options
from hpctrain_plugins.environments.image import Image, inspected
from hpctrain_plugins.environments.wheels import options, packages_spec
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec

WHERE = "environment.apptainer.image"
INSIDE = "/user-software"
ENV, IMAGES = "env", "images"


@frozen(kw_only=True)
class ImageRequest:
    """The image, the packages, and what is known of both."""

    options: Options
    image: Image
    spec: PackagesSpec
    pins: tuple[Pin, ...]
    arch: str
    oci: str
    has: Listing | None
    """What the image has; None while nobody asked it."""

    @property
    def pypi(self) -> tuple[Pin, ...]:
        """The packages at the versions that were pinned."""
        return tuple(p for p in self.pins if p.kind == "pypi")

    @property
    def file(self) -> Word:
        """The path of the image's file."""
        return self.image.path or self.pulled.loc

    def judged(self, cluster: Cluster) -> Cmd:
        """The line of a job that stops where the image is gone, or another user's and not accepted or whole.

        One by its path is whoever's the run file names; one of ours is not read again, which takes as long as
        its gigabytes do.
        """
        if self.image.path:
            return Cmd.of("ls", "-L", self.image.path, stdout="/dev/null")
        return Cmd.of("hpc_trust", self.pulled.loc, *cluster.owners_of(IMAGES))

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
    def user_packages(self) -> tuple[Package, ...]:
        """Code by path or git, whether it is compiled or only copied."""
        return (*self.spec.user_packages, *(s.package for s in self.spec.compile if not s.version))

    @property
    def replaced(self) -> tuple[str, ...]:
        """What takes the place of the image's own."""
        return inspected.replaced(self.spec, self.options.replace)

    @property
    def imported(self) -> tuple[str, ...]:
        """What must import, with the versions of what is replaced."""
        return inspected.imported(self.spec, self.options.replace, self.pins)

    @property
    def listed(self) -> Artifact:
        """The list of the image's packages, as the step `inspect` lists them."""
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
        if not (self.spec.packages or self.spec.user_packages or self.spec.compile):
            return None
        return Artifact(
            name=self.options.name,
            role=ENV,
            inputs={
                "image": self.image.key,
                "at": INSIDE,
                "packages": sorted(self.spec.wheels),
                "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in self.user_packages],
                "compile": [[s.name, s.version, options.deciding(s.built)] for s in self.spec.compile],
                "overlay": [self.options.overlay, self.options.size_mb * (self.options.overlay == "ext3")],
                "from": [self.options.index_url, *self.options.find_links],
                **({"replace": list(self.options.replace)} if self.options.replace else {}),
            },
            arch=self.arch,
            pins=inspected.deciding(self.pins, self.user_packages),
            separator="_",
            suffix=f"_{self.oci}.{'img' if self.options.overlay == 'ext3' else 'sqsh'}",
        )


def read(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> ImageRequest:
    """What the run file asks of the image, with the packages on top of it."""
    image_options: Options = run.environment.options or Options()
    stands_on = image.parse(image_options.image, WHERE, pins)
    return ImageRequest(
        options=image_options,
        image=stands_on,
        spec=packages_spec.read(as_venv(run, image_options), cluster),
        pins=pins,
        arch=target_arch(pins, cluster),
        oci=image.oci(pins, cluster),
        has=inspected.list_of(run, image_options.has, stands_on, "environment.apptainer.has", pins),
    )


def as_venv(run: RunSpec, image_options: Options) -> RunSpec:
    """This run with `venv` as its environment: its packages are resolved and installed as a venv's are."""
    wheel_options = options.Options(
        index_url=image_options.index_url,
        find_links=image_options.find_links,
        glibc=image_options.glibc,
        builds=image_options.builds,
    )
    return attrs.evolve(run, environment=attrs.evolve(run.environment, options=wheel_options))
