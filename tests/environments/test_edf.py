"""CSCS's Container Engine: what is built, how it is described, and what is refused before the queue."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.errors import ConfigError, Problem, fatal
from hpctrain.model.step import Pin
from hpctrain.model.words import Cmd, Join, Var
from hpctrain.render import files as rendered
from hpctrain.run.system.tools import Tools
from hpctrain.runfile.reading.toml import loads
from hpctrain.session import Session
from hpctrain_plugins.environments import pip
from hpctrain_plugins.environments.edf import pins
from tests.e2e.conftest import here as here
from tests.e2e.product import Product
from tests.environments.small_wheel import wheel
from tests.environments.test_image import DIGEST
from tests.environments.test_image import registry as registry

RUN = """
name = "mine"
cluster = "alps"
[resources]
nodes = 2
time = "15m"
account = "g1"
[environment]
use = "edf"
{environment}
[environment.edf]
{edf}
[train]
use = "command"
[train.command]
argv = ["python", "-V"]
"""
BASE = 'base = "nvcr.io/nvidia/pytorch:24.04-py3"'
JUDGED = ["/hpctrain/has.txt", "/hpctrain/constraint.txt"]
LIST = "# python 3.10 aarch64\ntorch==2.3.0a0+abc\n"


def session(folder: Path, edf: str = BASE, environment: str = "", **texts: str) -> Session:
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "run.toml").write_text(RUN.format(edf=edf, environment=environment))
    return Session(folder / "run.toml", environ={"USER": "ada", "HOME": str(folder)})


def problems(one: Session) -> tuple[Problem, ...]:
    """What is wrong, wherever it is said."""
    try:
        return one.plan().problems
    except ConfigError as error:
        return error.problems


def step_file(one: Session, step: str, name: str) -> str:
    found = one.plan().step_named(step)
    assert found is not None
    (file,) = [f for f in (*found.around.files, *found.step.files) if f.path == name]
    at = {role: f"/{role}" for role in one.cluster.storage}
    return rendered.text(file, attrs.evolve(one.binding, roots={**at, "runfile": str(one.source.base)}))


def test_an_image_holds_what_the_run_names_in_this_order(tmp_path: Path) -> None:
    (tmp_path / "mycode").mkdir()
    environment = 'packages = ["datasets", { path = "mycode" }]\ncompile = ["flash-attn==2.5.8"]'
    edf = f'{BASE}\napt = ["git"]\n[environment.edf.builds.flash-attn]\nenv = {{ MAX_JOBS = "8" }}'
    one = session(tmp_path, edf, environment)
    lines = step_file(one, "image", "Containerfile").splitlines()
    assert lines[0] == "FROM nvcr.io/nvidia/pytorch:24.04-py3"
    steps = [json.loads(line[4:]) for line in lines if line.startswith("RUN ")]
    assert [words[:4] for words in steps[:2]] == [
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends"],
    ]
    judged, *pips = steps[2:]
    assert judged[2:] == ["python3", "-m", "hpctrain_job.constraint", *JUDGED, "flash-attn"]
    assert [words[-1] for words in pips] == ["/hpctrain/packages.txt", "flash-attn==2.5.8", "/hpctrain/src-0"]
    assert all(words[:2] == list(pip.install("python3")[:2]) for words in pips)
    assert {"--no-build-isolation", "MAX_JOBS=8"} <= set(pips[1])
    assert step_file(one, "image", "packages.txt") == "datasets\n"


def test_the_user_s_own_containerfile_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text("FROM x.io/y:1\nRUN true\n")
    one = session(tmp_path, 'containerfile = "Containerfile"')
    assert step_file(one, "image", "Containerfile") == "FROM x.io/y:1\nRUN true\n"


def names(one: Session) -> list[str]:
    return [step.name for step in one.plan().steps]


def test_a_base_that_nobody_knows_is_listed_first_and_kept_to(tmp_path: Path) -> None:
    one = session(tmp_path, environment='packages = ["datasets"]')
    assert names(one) == ["inspect", "image", "verify", "train"]
    (said,) = [problem for problem in one.plan().problems if problem.code == "image-unknown"]
    assert not said.fatal
    assert 'has = "packages-' in said.notes[0]
    assert '"--constraint", "/hpctrain/constraint.txt"' in step_file(one, "image", "Containerfile")
    asks = step_file(one, "inspect", "Containerfile").splitlines()
    assert asks[0].startswith("FROM nvcr.io/nvidia/pytorch:24.04-py3")
    assert asks[-1] == "COPY --from=made /hpctrain/has.txt /"


def test_a_base_that_is_known_is_proved_before_anything_is_installed(tmp_path: Path) -> None:
    (tmp_path / "has.txt").write_text(LIST)
    one = session(tmp_path, f'{BASE}\nhas = "has.txt"', 'packages = ["datasets"]')
    assert names(one) == ["image", "verify", "train"]
    runs = [line for line in step_file(one, "image", "Containerfile").splitlines() if line.startswith("RUN")]
    assert json.loads(runs[0][4:])[-3:] == ["hpctrain_job.constraint", *JUDGED]
    assert step_file(one, "image", "has.txt") == LIST


def test_nothing_on_top_is_the_base_as_it_is(tmp_path: Path) -> None:
    plan = session(tmp_path, BASE).plan()
    apart = session(tmp_path, f'{BASE}\nkind = "venv"').plan()
    one, other = plan.step_named("image"), apart.step_named("image")
    assert one is not None
    assert other is not None
    assert one.step == other.step
    assert [step.name for step in apart.steps] == ["image", "verify", "train"]


def test_a_venv_is_mounted_beside_the_base(tmp_path: Path) -> None:
    one = session(tmp_path, f'{BASE}\nkind = "venv"', 'packages = ["datasets"]')
    assert names(one) == ["inspect", "image", "env", "verify", "train"]
    said: dict[str, Any] = loads(step_file(one, "train", "environment.toml"))
    assert said["image"].startswith("/images/pytorch-24.04-py3-")
    (mount,) = [mount for mount in said["mounts"] if mount.endswith(":sqsh")]
    assert mount.startswith("/images/pytorch-24.04-py3-venv-")
    assert mount.endswith(".sqsh:/user-software:sqsh")
    lines = step_file(one, "env", "Containerfile").splitlines()
    assert lines[0].endswith(" AS made")
    assert lines[-2:] == ["FROM scratch", "COPY --from=made /user-software /"]
    train = one.plan().step_named("train")
    assert train is not None
    assert ("VIRTUAL_ENV", "/user-software") in [(v.name, v.value) for v in train.around.env]


def test_podman_s_store_is_the_step_s_own(tmp_path: Path) -> None:
    one = session(tmp_path, environment='packages = ["datasets"]')
    storage = loads(step_file(one, "image", "storage.conf"))["storage"]
    assert (storage["driver"], storage["graphroot"]) == ("overlay", "/nodelocal/hpctrain/podman/root")


def test_the_description_is_one_table_each_and_mounts_what_the_run_uses(tmp_path: Path) -> None:
    edf = f'{BASE}\nmounts = ["/capstor/store/cscs/g1:/store:ro"]\nwritable = false'
    edf += '\nannotations = { "com.hooks.cxi.enabled" = "true", "com.hooks.ssh.enabled" = "false" }'
    said: dict[str, Any] = loads(step_file(session(tmp_path, edf), "train", "environment.toml"))
    assert said["image"].startswith("/images/pytorch-24.04-py3-")
    assert said["mounts"][-1] == "/capstor/store/cscs/g1:/store:ro"
    assert {"/runs:/runs", "/checkpoints:/checkpoints"} <= set(said["mounts"])
    assert not any(mount.startswith("/home") for mount in said["mounts"])
    assert (said["workdir"], said["writable"]) == ("${HPC_RUN}", False)
    hooks = said["annotations"]["com"]["hooks"]
    assert hooks.pop("aws_ofi_nccl") == {"enabled": "true", "variant": "cuda-dl"}  # what is added, adds
    assert hooks == {"cxi": {"enabled": "true"}, "ssh": {"enabled": "false"}}


def test_sarus_suite_takes_the_image_from_its_store_by_name(tmp_path: Path) -> None:
    one = session(tmp_path, f'{BASE}\nengine = "sarus"', 'packages = ["datasets"]')
    described: dict[str, Any] = loads(step_file(one, "train", "environment.toml"))
    assert described["image"].startswith("localhost/hpctrain/pytorch-24.04-py3:")
    assert described["entrypoint"] is False
    hooks = described["annotations"]["com"]["hooks"]
    assert hooks == {"cxi": {"enabled": "true"}, "aws_ofi_nccl": {"enabled": "true"}}
    assert all(mount.count(":") >= 1 for mount in described["mounts"])
    image, train = one.plan().step_named("image"), one.plan().step_named("train")
    assert image is not None
    assert train is not None
    programs = [command.argv[:2] for command in image.step.commands if isinstance(command, Cmd)]
    assert programs[-4:-1] == [("podman", "tag"), ("sarusctl", "migrate"), ("sarusctl", "images")]
    assert train.around.starter["slurm"] == (Join("--edf=./steps/", Var("HPC_STEP"), "/environment.toml"),)


@pytest.mark.parametrize(
    ("edf", "where"),
    [
        ('kind = "venv"', "kind"),
        ('image = "/capstor/mine.sqsh"', "image"),
        ('mounts = ["/capstor/x"]', "mounts"),
        ('mounts = ["/capstor/x.sqsh:/x:sqsh"]', "mounts"),
    ],
)
def test_what_sarus_suite_cannot_do_is_said_before(tmp_path: Path, edf: str, where: str) -> None:
    said = problems(session(tmp_path, f'{BASE}\nengine = "sarus"\n{edf}'))
    assert f"environment.edf.{where}" in [p.where for p in said if p.fatal]


EXTENDED = (
    'base = "ghcr.io/eth-cscs/alps-extended-images/ngc-pytorch:26.02-py3-alps6"',
    'base = "jfrog.svc.cscs.ch/docker-group-csstaff/alps-images/ngc-nemo:26.02-alps6"',
)


@pytest.mark.parametrize("base", EXTENDED)
@pytest.mark.parametrize("packages", ["", 'packages = ["datasets"]'])
def test_the_site_s_own_images_are_entered_in_their_own_way(tmp_path: Path, base: str, packages: str) -> None:
    one = session(tmp_path, base, packages)
    said: dict[str, Any] = loads(step_file(one, "train", "environment.toml"))
    assert said["entrypoint"] is True
    assert said["annotations"]["com"]["hooks"] == {"cxi": {"enabled": "false"}}
    train = one.plan().step_named("train")
    assert train is not None
    assert train.around.starter["slurm"][1:] == ("--network=disable_rdzv_get", "--mpi=pmix")
    assert ("PMIX_MCA_psec", "native") in [(v.name, v.value) for v in train.around.env]


def test_a_description_of_ones_own_is_the_base_of_the_run_s(tmp_path: Path) -> None:
    own = 'image = "/capstor/store/cscs/g1/own.sqsh"\n[annotations]\ncom.hooks.cxi.enabled = "true"\n'
    one = session(tmp_path, 'edf = "own.toml"', own=own)
    assert problems(one) == ()
    names = [step.name for step in one.plan().steps]
    assert names == ["verify", "train"]
    assert step_file(one, "train", "own.toml") == own


@pytest.mark.parametrize(
    ("edf", "own", "code", "said"),
    [
        ('base = ""', "", "no-environment", "which image"),
        (f'{BASE}\nmounts = ["/a:/b:fast"]', "", "edf-mount", "/a:/b:fast"),
        (f'{BASE}\nmounts = ["a:/b"]', "", "edf-mount", "begins with / or ./"),
        (f'{BASE}\nmounts = ["${{MINE}}/a:/b"]', "", "edf-variable", "nothing sets MINE"),
        (f'{BASE}\nmounts = ["$HOME/a:/b"]', "", "edf-variable", "braces"),
        ('containerfile = "own.toml"\nimage = "/a.sqsh"', "", "two-images", "/a.sqsh"),
        ('base = "pytorch"', "", "image", "'pytorch' names no image"),
        (f'{BASE}\nkind = "venv"\napt = ["git"]', "", "edf", "Python packages alone"),
        (f'{BASE}\nhas = "own.toml"', "", "image-list", "own.toml"),
        ('edf = "own.toml"', 'image = "/a"\n[env]\nA = 1\n', "edf", "strings alone"),
        ('edf = "own.toml"', 'image = "/a"\nwork_dir = "/"\n', "edf", "work_dir is not a key"),
        ('edf = "own.toml"', 'image = "/a"\nwritable = "yes"\n', "edf", "another type"),
        ('edf = "own.toml"', 'image = "/${NOT_SET}/a"\n', "edf-variable", "nothing sets NOT_SET"),
        (
            'edf = "own.toml"',
            'image = "/a"\n[annotations]\ncom.hooks.a.b = "1"\n[annotations.com.hooks]\nc = "2"\n',
            "edf",
            "own.toml",
        ),
    ],
)
def test_what_the_engine_would_refuse_is_said_before(
    edf: str, own: str, code: str, said: str, tmp_path: Path
) -> None:
    found = fatal(problems(session(tmp_path, edf, own=own or "x = 1")))
    assert code in [problem.code for problem in found]
    assert any(said in problem.message for problem in found), found


def test_variables_that_a_login_sets_can_be_named(tmp_path: Path) -> None:
    edf = f'{BASE}\nmounts = ["${{MINE}}/a:/b", "${{SCRATCH}}:/s", "${{X:-}}/y:/z"]\nvariables = ["MINE"]'
    assert fatal(problems(session(tmp_path, edf))) == ()


def test_inside_the_engine_nothing_that_its_hook_sets(tmp_path: Path) -> None:
    one = session(tmp_path)
    sets = one.cluster.facts["container_engine"]["sets"]
    train = one.plan().step_named("train")
    assert train is not None
    assert not {v.name for v in train.around.env} & {*sets, "NCCL_NET"}
    outside = Session(
        one.source.path,
        sets=['environment.use="ready"', 'environment.ready.prefix="/p"'],
        environ={"USER": "ada", "HOME": str(tmp_path)},
    )
    train = outside.plan().step_named("train")
    assert train is not None
    assert "NCCL_NET" in {v.name for v in train.around.env}


def test_install_writes_a_description_and_never_over_somebody_s(here: Product) -> None:
    here.write(RUN.format(edf='image = "/capstor/a.sqsh"', environment=""), "run.toml")
    done = here("edf", "install", "mine", "run.toml")
    path = here.home / ".edf/mine.toml"
    assert str(path) in done.stdout
    said = loads(path.read_text())
    assert said["image"] == "/capstor/a.sqsh"
    assert "workdir" not in said
    here("edf", "install", "mine", "run.toml")
    path.write_text('image = "/other.sqsh"\n')
    refused = here("edf", "install", "mine", "run.toml", code=2)
    assert "--force" in refused.stderr
    assert path.read_text() == 'image = "/other.sqsh"\n'
    here("edf", "install", "../mine", "run.toml", code=2)
    assert os.listdir(here.home / ".edf") == ["mine.toml"]  # noqa: PTH208


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    (folder / "none").mkdir(parents=True)
    wheel(folder, "alpha", "1.0", requires="torch>=2.1")
    wheel(folder, "intel", "1.0", tag="cp310-cp310-manylinux_2_28_x86_64")
    (tmp_path / "has.txt").write_text(LIST)
    return folder


def locked(house: Path, registry: str, *packages: str) -> list[Pin]:
    edf = f'base = "{registry}/a/b:1.0"\nhas = "has.txt"\n'
    edf += f'index_url = "file://{house}/none"\nfind_links = ["{house}"]'
    one = session(house.parent, edf, f"packages = {json.dumps(packages)}")
    return pins.resolve(one.plan().run, one.cluster, one.binding, (), Tools())


def test_what_the_base_has_is_kept_and_not_pinned(house: Path, registry: str) -> None:
    base, alpha = locked(house, registry, "alpha")
    assert (base.kind, base.value) == ("image", DIGEST)
    assert alpha.value.startswith("1.0 sha256:")


@pytest.mark.parametrize("name", ["torch==2.9.0", "no-such-package", "intel"])
def test_what_does_not_fit_the_base_or_the_target_is_refused(name: str, house: Path, registry: str) -> None:
    with pytest.raises(ConfigError) as caught:
        locked(house, registry, name)
    (problem,) = caught.value.problems
    assert problem.code == "no-solution"
    assert "the image has torch 2.3.0a0+abc, which is not replaced" in problem.notes[-1]
    assert ("replace = " in problem.hint) == name.startswith("torch")
