"""What a run says to a trainer that has its own repository and its own YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from hpctrain.plugin import (
    Cluster,
    Cmd,
    Code,
    ConfigError,
    EnvVar,
    How,
    Line,
    Plan,
    Problem,
    RunSpec,
    Word,
)
from hpctrain_plugins.trainers import ranks, starts
from hpctrain_plugins.trainers.external.config import Machine
from hpctrain_plugins.trainers.external.places import CHECKPOINTS
from hpctrain_plugins.trainers.yaml_file import Yaml, read

CODE, ORIGIN = "code", ".code"
ENV = (
    EnvVar(name="OMP_NUM_THREADS", value="1", how=How.DEFAULT, why="ranks that share cores burn them"),
    EnvVar(name="TOKENIZERS_PARALLELISM", value="false", why="its threads do not survive a fork"),
)
"""Variables that the libraries below these trainers read."""


@frozen
class Checkout:
    """Where a trainer's own repository is, at the commit that a run without `[code]` trains with."""

    url: str
    revision: str

    @property
    def code(self) -> Code:
        return Code(git=self.url, rev=self.revision)


def files_of(run: RunSpec, names: Iterable[str], reader: str) -> tuple[Yaml, ...]:
    """The trainer's own files as the run file names them; ConfigError with what is wrong in any."""
    files: list[Yaml] = []
    problems: list[Problem] = []
    for name in names:
        try:
            files.append(read(run.texts.get(name, ""), name, reader))
        except ConfigError as error:  # noqa: PERF203  (each file tells its own)
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    return tuple(files)


def one_file(run: RunSpec, name: str, reader: str, *, or_settings: object, example: str) -> tuple[Yaml, ...]:
    """The one file of a trainer that takes a single one; none where the run file's settings say it all."""
    files = files_of(run, [name] if name else [], reader)
    if not files and not or_settings:
        raise ConfigError.of(
            "trainer-missing",
            f"{reader} has no configuration",
            where=f"train.{reader}.config",
            hint=f'[train.{reader}]\nconfig = "{example}"',
        )
    return files


def machine(run: RunSpec, cluster: Cluster) -> Machine:
    """The GPUs and nodes that the run asks for."""
    gpus_per_node = max(1, ranks.gpus_per_node(run, cluster))
    world = ranks.world(run, cluster)
    return Machine(gpus=world, nodes=run.resources.nodes or -(-world // gpus_per_node))


def checkout_problems(run: RunSpec, checkout: Checkout) -> Iterator[Problem]:
    """A repository that the run names must be pinned to be the same tomorrow."""
    if run.code is not None and run.code.git and not run.code.rev:
        yield Problem(
            code="trainer-checkout",
            message="the newest revision of the repository would be trained with, whatever it is that day",
            where="code.git",
            hint=f'rev = "{checkout.revision}"',
            fatal=False,
        )


def counted_problems(run: RunSpec, trainer: str, key: str) -> Iterator[Problem]:
    """These trainers count steps between checkpoints, and know no time."""
    if run.checkpoint.every is not None:
        yield Problem(
            code="checkpoint-steps",
            message=f"{trainer} counts steps between checkpoints, so `every` has no effect",
            where="checkpoint.every",
            hint=f"{key}: 500      (in its configuration)",
            fatal=False,
        )


def revisions(run: RunSpec, plan: Plan, checkout: Checkout) -> frozenset[str]:
    """Every name of the checkout's revision: the run file's and the pinned commit."""
    code = run.code or checkout.code
    if not code.git:
        return frozenset()
    pinned = (pin.value for pin in plan.pins if pin.name.partition("@")[0] == code.git)
    return frozenset(filter(None, (code.rev, *pinned)))


def entered(assets: Mapping[str, Word]) -> tuple[Line, ...]:
    """The way into the checkout, where these trainers must be started."""
    return (Cmd.of("cd", assets[CODE]),) if CODE in assets else ()


def own_folder(run: RunSpec) -> str | None:
    """What a configuration goes on from: the run's own folder, or nothing where it must never do so."""
    return None if run.checkpoint.resume == starts.NEVER else CHECKPOINTS


def settings_of(options: Any) -> Mapping[str, Any]:
    """The run file's own keys of the configuration."""
    return dict(options.settings) if options is not None else {}
