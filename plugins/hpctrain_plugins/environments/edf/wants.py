"""What a run asks of the Container Engine, read once for locking, building and entering alike."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hpctrain.defaults import names
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.run import Package, RunSpec
from hpctrain.model.step import Artifact, Pin
from hpctrain.model.words import Word
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.edf import Options, containerfile
from hpctrain_plugins.environments.edf.containerfile import HAS
from hpctrain_plugins.environments.image import Image, known
from hpctrain_plugins.environments.image.known import Has
from hpctrain_plugins.environments.wheels import lists
from hpctrain_plugins.environments.wheels import wants as wanting
from hpctrain_plugins.environments.wheels.options import Options as Wheels
from hpctrain_plugins.environments.wheels.wants import Wants

WHERE = "environment.edf"
ROLE = "images"


@frozen(kw_only=True)
class Recipe:
    """All that decides what is built: its Containerfile, the lists beside it, and your own code."""

    text: str
    files: Mapping[str, tuple[str, ...]]
    own: tuple[Package, ...]


@frozen(kw_only=True)
class Asked:
    """The base, the packages, and what is known of both."""

    options: Options
    wants: Wants
    pins: tuple[Pin, ...]
    arch: str
    base: Image | None
    """None where a description or a Containerfile of the user's says it."""
    has: Has | None
    """What the base is known to have."""
    own_text: str
    """The user's own Containerfile."""

    @property
    def ready(self) -> bool:
        """Whether the image is there, and nothing is built."""
        return bool(self.options.image or self.options.edf)

    @property
    def adds(self) -> bool:
        """Whether packages are put on top of the base."""
        return bool(self.wants.packages or self.wants.own or self.wants.compile)

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
        return self.adds and self.has is None and self.base is not None and not self.options.containerfile

    @property
    def listed(self) -> Artifact:
        """What the base has, as it says itself."""
        key = self.base.key if self.base else ""
        return Artifact(name="packages", role=ROLE, inputs={"image": key}, arch=self.arch, suffix=".txt")

    @property
    def recipe(self) -> Recipe:
        """As pinned where it is pinned, else as asked."""
        if self.options.containerfile or self.base is None:
            return Recipe(text=self.own_text, files={}, own=())
        found = {name: lines for name, lines in lists.of(self.wants, self.pypi).items() if lines}
        if self.has is not None and self.adds:
            found = {HAS: known.listed(self.has), **found}
        text = containerfile.text(
            self.wants,
            self.base.plain,
            found,
            apt=self.options.apt,
            pinned=bool(self.pypi),
            kept=HAS if self.inspects or (self.has and not self.pypi) else "",
            apart=self.apart,
        )
        return Recipe(text=text, files=found, own=containerfile.own(self.wants))

    @property
    def image(self) -> Artifact:
        """The image that is entered: the base as it is, or what was built on it."""
        if self.untouched:
            inputs = {"image": self.untouched.key}
            return Artifact(name=self._front, role=ROLE, inputs=inputs, arch=self.arch, suffix=".sqsh")
        return self._built(self._front)

    @property
    def venv(self) -> Artifact | None:
        """The packages as a file of their own."""
        return self._built(f"{self._front}-venv") if self.apart and self.adds and self.untouched else None

    def _built(self, front: str) -> Artifact:
        made = self.recipe
        git = {names.git(p.git, p.rev) for p in made.own if p.git}
        mine = (p for p in self.pins if p.kind in ("pypi", "rebuild") or (p.kind == "git" and p.name in git))
        return Artifact(
            name=front,
            role=ROLE,
            inputs={
                "containerfile": made.text,
                "lists": {name: list(lines) for name, lines in made.files.items()},
                "own": [[p.name, p.git, p.rev, p.sha256 or p.path] for p in made.own],
                "build": list(self.options.build_args),
            },
            arch=self.arch,
            pins=tuple(mine),
            suffix=".sqsh",
        )

    @property
    def _front(self) -> str:
        """The front of the file name; never the run's, so that two runs share what is the same."""
        return self.options.name or (self.base.name if self.base else "image")

    @property
    def entered(self) -> Word:
        """Where the image lies, for the description; nothing where the user's own says it."""
        return self.options.image or ("" if self.options.edf else self.image.loc)


def of(run: RunSpec) -> Options:
    """The options, or what stands where the run file says nothing."""
    options: Options = run.environment.options or Options()
    return options


def read(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Asked:
    """The wants of a run."""
    options = of(run)
    if not (options.image or options.edf or options.base or options.containerfile):
        raise ConfigError.of(
            "no-environment",
            "nothing says which image to build or enter",
            where=WHERE,
            hint='[environment.edf]\nbase = "nvcr.io/nvidia/pytorch:25.06-py3"      or image, edf',
        )
    there = bool(options.image or options.edf)
    base = image.parse(options.base, f"{WHERE}.base", pins) if options.base and not there else None
    return Asked(
        options=options,
        wants=wanting.read(as_wheels(run), cluster),
        pins=pins,
        arch=names.arch(pins, cluster),
        base=base,
        has=known.has(run, options.has, base, f"{WHERE}.has") if base else None,
        own_text=run.texts.get(options.containerfile, "") if options.containerfile else "",
    )


def as_wheels(run: RunSpec) -> RunSpec:
    """The same run for packages alone: an image's are resolved and installed as a prefix's are."""
    options = of(run)
    said = Wheels(
        index_url=options.index_url,
        find_links=options.find_links,
        glibc=options.glibc,
        builds=options.builds,
        build=(),
    )
    return attrs.evolve(run, environment=attrs.evolve(run.environment, options=said))
