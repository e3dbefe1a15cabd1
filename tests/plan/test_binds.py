"""What a container must see: everything that any layer, asset or variable of a step inside names."""

from __future__ import annotations

from pathlib import Path

from hpctrain.hooks.marker import hookimpl
from hpctrain.model.layer import Bind, EnvVar, Layer
from hpctrain.model.step import Step
from hpctrain.model.words import Loc
from hpctrain.session import Session

RUN = """
name = "mine"
cluster = "alps"
[resources]
nodes = 1
time = "15m"
[environment]
use = "edf"
[environment.edf]
image = "/capstor/image.sqsh"
[assets]
model = { path = "/capstor/store/models/one" }
[train]
use = "command"
[train.command]
argv = ["python", "-V", "{assets.model}"]
"""


class Site:
    """A hook of somebody's: a folder, and a variable that lies in a role."""

    @hookimpl
    def surround(self, step: Step) -> Layer | None:
        if not step.trains:
            return None
        cache = EnvVar(name="CACHE", value=Loc("nodelocal", "triton"), why="kernels are compiled there")
        return Layer(binds=(Bind(source="/gpfs/projects"),), env=(cache,))


def session(folder: Path) -> Session:
    (folder / "run.toml").write_text(RUN)
    return Session(folder / "run.toml", extra=[Site()], environ={"HOME": str(folder)})


def test_binds_of_hooks_assets_and_variables_reach_the_container(tmp_path: Path) -> None:
    files = session(tmp_path).files()
    job = files["steps/train/job.sh"]
    assert isinstance(job, str)
    assert "/gpfs/projects:/gpfs/projects" in job
    assert "/capstor/store/models/one:/capstor/store/models/one:ro" in job
    assert 'hpc_json /dev/shm/"${USER}":/dev/shm/"${USER}"' in job


def test_a_description_is_written_where_the_user_is_not_known(tmp_path: Path) -> None:
    job = session(tmp_path).files()["steps/train/job.sh"]
    assert isinstance(job, str)
    assert "steps/train/environment.toml" in job
