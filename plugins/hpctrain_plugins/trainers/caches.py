"""Where the libraries below every trainer keep what they make: in the run, but for what runs may share.

By themselves they write to the home folder, which is small, slow, and shared by runs that then wait for each
other or read what another version compiled. What `datasets` makes of data, tokens among it, is named by its
content and by the code that made it, and written aside first: the runs of one user share it.
"""

from __future__ import annotations

from hpctrain.plugin import Cluster, Cmd, EnvVar, How, Join, Loc, Scope, Var

_DATASETS = Join(Loc("assets", ".datasets-"), Var("EUID"))
"""One for each user: whoever may write there decides what others train on."""


def _in_run(name: str, below: str, why: str) -> EnvVar:
    folder = Join(Var("HPC_RUN"), f"/cache{below}")
    return EnvVar(name=name, value=folder, how=How.DEFAULT, why=why)


_PRIVATE = (
    _in_run("HPC_CACHE", "", "the run's own place for what programs keep"),
    _in_run("XDG_CACHE_HOME", "", "what libraries without a variable of their own keep in the home folder"),
    _in_run("HF_HOME", "/huggingface", "the default is in the home folder, which is small"),
    _in_run("TORCH_HOME", "/torch", "weights that torch fetches; home folders are small"),
    _in_run(
        "TORCH_EXTENSIONS_DIR",
        "/extensions",
        "kernels compile at the first start; two users of one cache wait for each other",
    ),
    _in_run(
        "TRITON_CACHE_DIR",
        "/triton",
        "kernels compile at the first step; home folders are small and shared by all runs",
    ),
    EnvVar(
        name="WANDB_DIR",
        value=Var("HPC_RUN"),
        how=How.DEFAULT,
        why="where `hpctrain sync` looks for what was logged without a network",
    ),
    _in_run("WANDB_DATA_DIR", "/wandb", "artifacts that wait to be sent; the default is in the home folder"),
)
"""What each run has for itself."""


def env(cluster: Cluster) -> tuple[EnvVar, ...]:
    """Variables of the libraries; a site or a run file that names another place wins."""
    if "assets" not in cluster.storage:
        return _PRIVATE
    datasets = EnvVar(
        name="HF_DATASETS_CACHE",
        value=_DATASETS,
        how=How.DEFAULT,
        at=Scope.JOB,
        why="what one run made of the data, the next one need not make again",
    )
    return (*_PRIVATE, datasets)


def job(cluster: Cluster) -> tuple[Cmd, ...]:
    """The line of the job that makes the folder that runs share, or does without it."""
    return (Cmd.of("hpc_private", "HF_DATASETS_CACHE", _DATASETS),) if "assets" in cluster.storage else ()
