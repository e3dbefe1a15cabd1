"""Leonardo Booster as hpctrain sees it: facts in `cluster.toml`, and the little that is no fact."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import EnvVar, How, Join, Layer, Rule, RunSpec, Scope, Step, hookimpl

HPCTRAIN_API = 1

COMPILES = "compile-"


@hookimpl
def surround(run: RunSpec, step: Step) -> Layer:
    """The cores of a task, for what training starts itself, and its log under the guide's name; nvcc, for
    what is compiled."""
    from hpctrain_plugins.named_logs import linked

    if not step.trains:
        return Layer(env=_nvcc(run, step))
    cores = EnvVar(
        name="SRUN_CPUS_PER_TASK",
        value=str(step.launch.cpus_per_rank),
        at=Scope.JOB,
        why="since 22.05 a step started inside a job gets one core unless told",
        fact="slides-2026",
    )
    return Layer(env=(cores,), job=linked(f"slurm/{run.name}_${{HPC_JOB}}.out"))


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures that the users of this machine met."""
    return RULES


def _nvcc(run: RunSpec, step: Step) -> tuple[EnvVar, ...]:
    """The compiler by its path, because the module would bring libraries that break the driver's."""
    variables = getattr(run.environment.options, "env", {})
    if not step.name.startswith(COMPILES) or "CUDA_HOME" not in variables:
        return ()
    why = "nvcc, without the stub libraries of the cuda module"
    return (EnvVar(name="PATH", value=Join(variables["CUDA_HOME"], "/bin"), how=How.PREPEND, why=why),)


RULES = (
    Rule(
        name="torchrun-18",
        pattern=r"exitcode\s*:\s*18\b|returned non-zero exit status 18\b|exited with exit code 18\b",
        cause="a rank ended with 18 under torchrun; the guide calls it a known issue and gives no reason",
        fix="[train.automodel]\ntorchrun = false      (the scheduler starts every rank)",
    ),
    Rule(
        name="nvml-mismatch",
        pattern=r"Driver/library version mismatch|nvmlInit.*stub",
        cause="a cuda module is loaded, and its stub libraries are found before the driver's",
        fix="no cuda module in [environment.ready] modules; CUDA_HOME is set without it",
        sure="certain",
    ),
    Rule(
        name="ram-tmp",
        pattern=r"No space left on device.*/tmp\b|/tmp\b.*No space left on device",
        cause="the temporary folder of a Booster node is 10 GB of its memory",
        fix='[env]\nTMPDIR = "/dev/shm"',
        sure="certain",
    ),
)
