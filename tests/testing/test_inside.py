"""The kit fails where a container does not see what its task names: plugins that forget a bind prove it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpctrain.hooks.marker import hookimpl
from hpctrain.model.layer import Bind, Layer
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Step
from hpctrain.model.words import Join, Loc, Raw, Var
from hpctrain.session import Session
from hpctrain.testing.inside import uncovered
from hpctrain.testing.subject import environ

RUN = """
name = "boxed"
cluster = "{cluster}"
secrets = ["huggingface"]
[resources]
nodes = 2
time = "15m"
account = "g1"
[environment]
use = "{use}"
[environment.{use}]
{options}
[assets]
corpus = {{ path = "/fs/corpus" }}
model = {{ hub = "Qwen/Qwen3-0.6B" }}
[train]
use = "command"
[train.command]
argv = ["python", "-V", "{{assets.corpus}}", "{{assets.model}}", "{{checkpoints}}"]
"""
SHIPPED = {
    "edf": ("alps", 'image = "/capstor/image.sqsh"'),
    "apptainer": ("olivia", 'image = "/cluster/image.sif"'),
    "ready": ("olivia", 'image = "/cluster/image.sif"'),
}
Chooses = Callable[[Bind], bool]


class Podman:
    """A third party's container, which hands on the binds that `chooses` lets through."""

    def __init__(self, chooses: Chooses, more: tuple[Bind, ...] = ()) -> None:
        self.chooses, self.more = chooses, more

    @hookimpl(tryfirst=True)
    def enter_env(self, run: RunSpec, binds: tuple[Bind, ...]) -> Layer:
        volumes = (
            Join("--volume=", bind.source, ":", bind.target or bind.source)
            for bind in (*binds, *self.more)
            if self.chooses(bind)
        )
        return Layer(wrap=("podman-hpc", "run", "--rm", *volumes, "quay.io/site/torch:1"))


def session(folder: Path, use: str, *hooks: object) -> Session:
    cluster, options = SHIPPED[use]
    (folder / "run.toml").write_text(RUN.format(use=use, cluster=cluster, options=options))
    return Session(folder / "run.toml", extra=hooks, environ=environ())


@pytest.mark.parametrize("use", SHIPPED)
def test_shipped_containers_see_the_run_and_its_tokens(use: str, tmp_path: Path) -> None:
    here = session(tmp_path, use)
    assert list(uncovered(here)) == []
    train = here.plan().step_named("train")
    assert train is not None
    assert any(var.name == "HF_TOKEN" for var in train.around.env)


def test_a_plugin_that_hands_every_bind_on_is_right(tmp_path: Path) -> None:
    assert list(uncovered(session(tmp_path, "ready", Podman(lambda _: True)))) == []


@pytest.mark.parametrize(
    ("forgotten", "message"),
    [
        (Var("HPC_RUN"), "names the run's directory, and no bind covers ${HPC_RUN}"),
        (Var("HPC_SECRETS"), "names the folder of its tokens, and no bind covers ${HPC_SECRETS}"),
        (Loc("assets"), "names the storage role assets, and no bind covers /"),
        (Loc("checkpoints"), "names the storage role checkpoints, and no bind covers /"),
        ("/fs/corpus", "names the asset corpus, and no bind covers /fs/corpus"),
    ],
)
def test_a_forgotten_bind_is_named(forgotten: object, message: str, tmp_path: Path) -> None:
    plugin = Podman(lambda bind: bind.source != forgotten)
    complaints = list(uncovered(session(tmp_path, "ready", plugin)))
    assert [line for line in complaints if line.startswith(f"step train {message}")], complaints
    assert all(message in line for line in complaints), complaints


def test_a_folder_above_and_a_word_of_bash_cover_too(tmp_path: Path) -> None:
    wide = (Bind(source="/fs"), Bind(source=Raw('"$HPC_RUN"')))
    plugin = Podman(lambda bind: bind.source not in ("/fs/corpus", Var("HPC_RUN")), wide)
    assert list(uncovered(session(tmp_path, "ready", plugin))) == []


def test_tokens_are_seen_by_the_step_that_reads_them_alone(tmp_path: Path) -> None:
    class Prepares:
        @hookimpl
        def prepare_data(self, name: str) -> list[Step] | None:
            return [Step(name="tokens", commands=(), inside=True)] if name == "corpus" else None

    plan = session(tmp_path, "ready", Prepares()).plan()
    tokens = Join("--bind=", Var("HPC_SECRETS"), ":", Var("HPC_SECRETS"), ":ro")
    sees = {planned.name: tokens in planned.around.wrap for planned in plan.steps}
    assert sees["train"]
    assert not sees["tokens"]


def test_a_token_that_the_run_file_replaces_has_no_folder(tmp_path: Path) -> None:
    session(tmp_path, "ready")
    text = (tmp_path / "run.toml").read_text().replace("[train]\n", '[env]\nHF_TOKEN = ""\n[train]\n')
    (tmp_path / "run.toml").write_text(text)
    here = Session(tmp_path / "run.toml", environ=environ())
    train = here.plan().step_named("train")
    assert train is not None
    assert "HPC_SECRETS" not in repr(train.around.wrap)
