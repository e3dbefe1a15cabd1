"""What a run asks of the Container Engine, read once for locking, building and entering alike."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from attrs import frozen

from hpctrain.plugin import Artifact, Cluster, ConfigError, Package, Pin, RunSpec, Word
from hpctrain.toolbox import target_arch
from hpctrain_job.listing import Listing
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.edf import containerfile
from hpctrain_plugins.environments.edf.containerfile import HAS
from hpctrain_plugins.environments.edf.options import SARUS_HOOKS, USUAL, Family, Options
from hpctrain_plugins.environments.image import Image, inspected
from hpctrain_plugins.environments.wheels import lists, packages_spec
from hpctrain_plugins.environments.wheels.options import Options as Wheels
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec

WHERE = "environment.edf"
ROLE = "images"


@frozen(kw_only=True)
class Recipe:
    """All that decides what is built: its Containerfile, the lists beside it, and your own code."""

    text: str
    files: Mapping[str, tuple[str, ...]]
    user_packages: tuple[Package, ...]


@frozen(kw_only=True)
class ImageRequest:
    """The base, the packages, and what is known of both."""

    options: Options
    spec: PackagesSpec
    pins: tuple[Pin, ...]
    arch: str
    base: Image | None
    """None where a description or a Containerfile of the user's says it."""
    has: Listing | None
    """What the base has; None while nobody asked it."""
    own_text: str
    """The user's own Containerfile."""

    @property
    def ready(self) -> bool:
        """Whether the image is there, and nothing is built."""
        return bool(self.options.image or self.options.edf)

    @property
    def family(self) -> Family:
        """How images of this name are entered."""
        name = self.options.base or self.options.image
        families = self.options.families.values()
        return next((family for family in families if name.startswith(family.names)), USUAL)

    @property
    def annotations(self) -> Mapping[str, str]:
        """What the engine's hooks read."""
        hooks = self.family.annotations
        if self.stored and self.family is USUAL:
            hooks = SARUS_HOOKS
        return {**hooks, **self.options.annotations}

    @property
    def stored(self) -> bool:
        """Whether the image lies in the store of Sarus Suite, by a name, and not in a file."""
        return self.options.engine == "sarus"

    @property
    def entrypoint(self) -> bool:
        """Whether the image's entrypoint is run."""
        return self.options.entrypoint or self.family.entrypoint

    @property
    def adds(self) -> bool:
        """Whether packages are put on top of the base."""
        return bool(self.spec.packages or self.spec.user_packages or self.spec.compile)

    @property
    def untouched(self) -> Image | None:
        """The base where it is entered as it is: alone, or with a venv beside it."""
        changed = self.options.containerfile or self.options.apt or (self.adds and not self.apart)
        return None if changed else self.base

    @property
    def apart(self) -> bool:
        """Whether packages become a venv of their own, beside an image that stays as it is."""
        return self.options.kind == "venv"

    @property
    def pypi(self) -> tuple[Pin, ...]:
        """The packages at the versions that were pinned."""
        return tuple(p for p in self.pins if p.kind == "pypi")

    @property
    def inspects(self) -> bool:
        """Whether a short job must ask the base what it has."""
        return self.judges and self.has is None

    @property
    def judges(self) -> bool:
        """Whether the base is proven to be the one that was listed, before pip adds to it."""
        return self.adds and self.base is not None and not self.options.containerfile

    @property
    def imported(self) -> tuple[str, ...]:
        """What must import, with the versions of what is replaced."""
        return inspected.imported(self.spec, self.options.replace, self.pins)

    @property
    def replaced(self) -> tuple[str, ...]:
        """What takes the place of the base's own."""
        return inspected.replaced(self.spec, self.options.replace)

    @property
    def listed(self) -> Artifact:
        """The list of the base's packages, as the step `inspect` lists them."""
        key = self.base.key if self.base else ""
        return Artifact(name="packages", role=ROLE, inputs={"image": key}, arch=self.arch, suffix=".txt")

    @property
    def recipe(self) -> Recipe:
        """The recipe of the image: with pinned versions where there are pins, else as the run file writes
        them."""
        if self.options.containerfile or self.base is None:
            return Recipe(text=self.own_text, files={}, user_packages=())
        requirement_lists = {name: lines for name, lines in lists.of(self.spec, self.pypi).items() if lines}
        text = containerfile.text(
            self.spec,
            self.base.plain,
            requirement_lists,
            apt=self.options.apt,
            pinned=bool(self.pypi),
            replaced=self.replaced,
            apart=self.apart,
        )
        listed = {HAS: tuple(self.has.lines())} if self.has is not None and self.judges else {}
        return Recipe(
            text=text,
            files={**listed, **requirement_lists},
            user_packages=containerfile.user_packages(self.spec),
        )

    @property
    def image(self) -> Artifact:
        """The image that is entered: the base as it is, or what was built on it."""
        artifact = self._built(self._front)
        if self.untouched:
            inputs = {"image": self.untouched.key}
            artifact = Artifact(name=self._front, role=ROLE, inputs=inputs, arch=self.arch, suffix=".sqsh")
        if self.stored:
            # The store is the user's own, whoever shares the folder of images: so is the note of it.
            inputs = {**artifact.inputs, "engine": self.options.engine}
            return attrs.evolve(artifact, role="state", folder="sarus", inputs=inputs, suffix=".txt")
        return artifact

    @property
    def reference(self) -> str:
        """The image's name in the store of Sarus Suite."""
        return f"localhost/hpctrain/{self._front.lower()}:{self.image.key}"

    @property
    def venv(self) -> Artifact | None:
        """The packages as a file of their own."""
        return self._built(f"{self._front}-venv") if self.apart and self.adds and self.untouched else None

    def _built(self, front: str) -> Artifact:
        recipe = self.recipe
        return Artifact(
            name=front,
            role=ROLE,
            inputs={
                "containerfile": recipe.text,
                "lists": {name: list(lines) for name, lines in recipe.files.items()},
                "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in recipe.user_packages],
                "build": list(self.options.build_args),
            },
            arch=self.arch,
            pins=inspected.deciding(self.pins, recipe.user_packages),
            suffix=".sqsh",
        )

    @property
    def _front(self) -> str:
        """The front of the file name; never the run's, so that two runs share what is the same."""
        return self.options.name or (self.base.name if self.base else "image")

    @property
    def entered(self) -> Word:
        """Where the image lies, for the description; nothing where the user's own says it."""
        if self.options.image or self.options.edf:
            return self.options.image
        return self.reference if self.stored else self.image.loc


def of(run: RunSpec) -> Options:
    """The options, or what stands where the run file says nothing."""
    options: Options = run.environment.options or Options()
    return options


def read(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> ImageRequest:
    """What the run file asks of the image, with the packages on top of it."""
    options = of(run)
    if not (options.image or options.edf or options.base or options.containerfile):
        raise ConfigError.of(
            "no-environment",
            "nothing says which image to build or enter",
            where=WHERE,
            hint='[environment.edf]\nbase = "nvcr.io/nvidia/pytorch:25.06-py3"      or image, edf',
        )
    is_ready = bool(options.image or options.edf)
    base = image.parse(options.base, f"{WHERE}.base", pins) if options.base and not is_ready else None
    return ImageRequest(
        options=options,
        spec=packages_spec.read(as_wheels(run), cluster),
        pins=pins,
        arch=target_arch(pins, cluster),
        base=base,
        has=inspected.list_of(run, options.has, base, f"{WHERE}.has", pins) if base else None,
        own_text=run.texts.get(options.containerfile, "") if options.containerfile else "",
    )


def as_wheels(run: RunSpec) -> RunSpec:
    """This run with options of wheels: an image's packages are resolved and installed as a prefix's are."""
    options = of(run)
    wheel_options = Wheels(
        index_url=options.index_url,
        find_links=options.find_links,
        glibc=options.glibc,
        builds=options.builds,
        build=(),
    )
    return attrs.evolve(run, environment=attrs.evolve(run.environment, options=wheel_options))
