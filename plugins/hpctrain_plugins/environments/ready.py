"""An environment that exists already: a prefix, an image or modules; entered and verified, never built."""

from __future__ import annotations

import attrs
from attrs import frozen

from hpctrain.plugin import (
    Artifact,
    Bind,
    Cluster,
    Cmd,
    ConfigError,
    Layer,
    Module,
    Need,
    Pin,
    RunSpec,
    Step,
    Var,
    Word,
    hookimpl,
)
from hpctrain.toolbox import target_arch
from hpctrain_plugins.environments import image, prefix
from hpctrain_plugins.environments.wheels.packages_spec import name_of

HPCTRAIN_API = 1


@frozen(kw_only=True)
class Options:
    """An environment that is there: a prefix or an image, with or without modules; or modules alone."""

    prefix: str = ""
    """A folder with `bin/python`: a venv, a conda environment."""
    image: str = ""
    """A SIF or SquashFS image, entered with `apptainer exec` by its path."""
    modules: tuple[str, ...] = ()
    """Modules of the site, as `module load` knows them."""


@hookimpl
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> tuple[Step, ...]:
    """Nothing is built; its Python is started once where it will train, and imports what the run names."""
    options = _options(run)
    if not (options.prefix or options.image or options.modules):
        raise ConfigError.of(
            "no-environment",
            "nothing says which environment is ready",
            where="environment.ready",
            hint='[environment.ready]\nprefix = "/path/to/env"      or image, modules',
        )
    if options.prefix and options.image:
        raise ConfigError.of(
            "no-environment", "a prefix and an image cannot both be entered", where="environment.ready"
        )
    if ":" in options.prefix:
        raise ConfigError.of(
            "wrong-value",
            f"{options.prefix} is no prefix that programs are found in: PATH is cut at a colon",
            where="environment.ready.prefix",
            hint='prefix = "a link to it, whose name has no colon"',
        )
    named = [p.name or name_of(p.requirement) for p in run.environment.packages]
    if not named and not options.prefix:
        return ()
    inputs = {"imports": named, **attrs.asdict(options)}
    proof = Artifact(
        name="verified", role="env", inputs=inputs, arch=target_arch(pins, cluster), suffix=".txt"
    )
    # By its path: `python` would be another one where the prefix does not exist.
    program = prefix.python(options.prefix) if options.prefix else "python"
    check = Cmd.of(program, "-m", "hpctrain_job.imports", *named, stdout=Var("WORK"))
    return (Step(name="verify", commands=(check,), needs=frozenset({Need.TARGET}), inside=True, makes=proof),)


@hookimpl
def enter_env(run: RunSpec, cluster: Cluster, binds: tuple[Bind, ...]) -> Layer:
    """Modules first, then the prefix in front or the image around."""
    options = _options(run)
    modules = tuple(map(Module.parse, options.modules))
    if options.prefix:
        # Said in each task, because a prefix may go after it was verified: PATH alone would find another.
        prefix_check = Cmd.of("ls", "-L", prefix.python(options.prefix), stdout="/dev/null")
        return attrs.evolve(prefix.layer(options.prefix), modules=modules, task=(prefix_check,))
    if options.image:
        # Apptainer refuses to bind a folder that nobody made yet.
        folders = tuple(Cmd.of("mkdir", "-p", folder) for folder in image.folders(binds))
        return Layer(
            env=prefix.OTHERS_KEPT_OUT,
            modules=modules,
            wrap=_apptainer(options.image, cluster, binds),
            job=folders,
        )
    return Layer(modules=modules)


def _apptainer(file: str, cluster: Cluster, binds: tuple[Bind, ...]) -> tuple[Word, ...]:
    """The image with the GPUs and every folder that must be visible."""
    from hpctrain_plugins.environments.apptainer import words  # a prefix is no image

    flags = map(words.option, binds)
    return ("apptainer", "exec", *words.GPU_FLAG[cluster.hardware.gpu_kind], *flags, file)


def _options(run: RunSpec) -> Options:
    return run.environment.options or Options()
