"""Apptainer: what is resolved on top of an image, the steps that build it, the way in."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError, fatal
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.model.layer import Scope
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Need, Pin
from hpctrain.model.train import Train
from hpctrain.model.words import Secret
from hpctrain.render import shell
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.environments import apptainer
from hpctrain_plugins.environments.wheels.options import Expect
from tests.defaults.rig import ROLES, cluster, plan
from tests.environments.small_wheel import wheel

KNOWN = "nvcr.io/nvidia/pytorch:25.06-py3"
DIGEST = "sha256:6d46ebd64cfbc74c84e11678c0c5ae298ca97c26171c17a23fd04d23fec5123e"
LIST = "# python 3.12 aarch64\ntorch==2.8.0a0+abc\nnumpy==1.26.4\n"
PINS = (
    Pin(KNOWN, "image", DIGEST),
    Pin("trl", "pypi", "0.23.1"),
    Pin(DIGEST, "has", LIST.strip().replace("\n", " | ")),
)
BINDING = Binding(roots={r: f"/fs/{r}" for r in (*ROLES, "images")}, user="u")


class Here:
    """A trainer that is one program."""

    @hookimpl
    def train_command(self) -> Train:
        return Train(argv=("python", "train.py"))


def site(arch: str = "aarch64", **roles: Storage) -> Cluster:
    made = cluster(arch=arch, gpu_kind="cuda")
    images = Storage(path="/fs/images", source="doc")
    return attrs.evolve(made, storage={**made.storage, "images": images, **roles})


def asked(*names: str, secrets: tuple[str, ...] = (), texts: str = "", **options: object) -> RunSpec:
    fields = {"image": KNOWN, **options}
    env = Environment(
        use="apptainer",
        packages=tuple(map(Package.parse, names)),
        options=apptainer.Options(**fields),  # type: ignore[arg-type]
    )
    return RunSpec(
        name="r", cluster="toy", environment=env, secrets=secrets, texts={"has.txt": texts} if texts else {}
    )


def steps(made: Plan) -> list[str]:
    return [s.name for s in made.steps]


def lines(made: Plan, step: str) -> list[str]:
    found = made.step_named(step)
    assert found is not None
    return [shell.line(c, BINDING) for c in found.step.commands]


def test_a_known_image_is_pulled_and_not_asked() -> None:
    made = plan(asked("trl"), site(), apptainer, pins=PINS)
    assert steps(made) == ["image", "env", "verify"]
    pull = next(line for line in lines(made, "image") if line.startswith("apptainer pull"))
    assert pull == f'apptainer pull --arch arm64 "${{WORK}}" docker://nvcr.io/nvidia/pytorch@{DIGEST}'
    env = made.step_named("env")
    assert env is not None
    assert env.step.makes is not None
    name = env.step.makes.filename
    assert name.startswith("myenv_")
    assert name.endswith("_arm64.sqsh")
    assert not fatal(made.problems)


def test_an_unknown_image_is_asked_first_and_the_plan_says_so() -> None:
    made = plan(asked("trl", image="/data/x.sif"), site(), apptainer)
    assert steps(made) == ["inspect", "env", "verify"]
    (warning,) = [p for p in made.problems if p.code == "image-unknown"]
    assert not warning.fatal
    assert warning.hint.startswith("hpctrain lock ")
    assert 'has = "packages-' in warning.notes[0]
    told = plan(asked("trl", image="/data/x.sif", has="has.txt", texts=LIST), site(), apptainer)
    assert steps(told) == ["env", "verify"]


def test_without_packages_the_image_alone_is_entered() -> None:
    made = plan(asked(), site(), apptainer, pins=PINS[:1])
    assert steps(made) == ["image"]


def test_an_ext3_overlay_is_another_file() -> None:
    squash = plan(asked("trl"), site(), apptainer, pins=PINS)
    ext3 = plan(asked("trl", overlay="ext3"), site(), apptainer, pins=PINS)
    made = ext3.step_named("env")
    assert made is not None
    assert made.step.makes is not None
    assert made.step.makes.filename.endswith("_arm64.img")
    assert any(
        "overlay create --sparse --size 5120 --create-dir /user-software" in c for c in lines(ext3, "env")
    )
    assert not any("mksquashfs" in c for c in lines(ext3, "env"))
    assert any("mksquashfs" in c for c in lines(squash, "env"))


def test_what_decides_the_content_decides_the_name() -> None:
    def name(run: RunSpec, *pins: Pin) -> str:
        env = plan(run, site(), apptainer, pins=pins).step_named("env")
        assert env is not None
        assert env.step.makes is not None
        return env.step.makes.filename

    first = name(asked("trl"), *PINS)
    assert first == name(asked("trl"), *PINS)
    others = {
        name(asked("trl", "peft"), *PINS),
        name(asked("trl"), PINS[0], Pin("trl", "pypi", "0.24.0")),
        name(asked("trl", replace=("numpy",)), *PINS),
        name(asked("trl"), Pin(KNOWN, "image", "sha256:" + "0" * 64), PINS[1]),
        name(asked("trl", name="mine"), *PINS),
    }
    assert len(others) == 5
    assert first not in others


@pytest.mark.parametrize("path", ["{home}/x", "~/x", "/fs/home/x"])
def test_the_home_directory_is_no_target(path: str) -> None:
    made = plan(asked("trl"), site(env=Storage(path=path, source="doc")), apptainer, pins=PINS)
    (problem,) = fatal(made.problems)
    assert (problem.code, problem.where) == ("home-target", "storage.env.path")


def test_the_older_name_of_the_token_reaches_training_alone() -> None:
    run = attrs.evolve(asked("trl", secrets=("huggingface",)), train=attrs.evolve(asked().train, use="x"))
    made = plan(run, site(), apptainer, Here(), pins=PINS)
    assert steps(made) == ["image", "env", "verify", "train"]
    for step in made.steps:
        tokens = {v.name for v in step.around.env if isinstance(v.value, Secret) and v.at is Scope.TASK}
        assert tokens == ({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} if step.step.trains else set()), step.name


def test_the_environment_is_proven_on_a_gpu_as_training_enters_it() -> None:
    toy = site()
    gh200 = attrs.evolve(toy, hardware=attrs.evolve(toy.hardware, gpu_kind="cuda", gpus_per_node=4))
    made = plan(asked("trl"), gh200, apptainer, pins=PINS)
    verify = made.step_named("verify")
    assert verify is not None
    assert (verify.step.inside, verify.step.launch.gpus_per_node, verify.step.needs >= {Need.GPU}) == (
        True,
        1,
        True,
    )
    *_, gpus = lines(made, "verify")
    assert gpus == "python3 -m hpctrain_job.gpus --devices=1 --if-there"
    told = plan(asked("trl", expect=Expect(nccl="2.27")), gh200, apptainer, pins=PINS)
    assert lines(told, "verify")[-1] == "python3 -m hpctrain_job.gpus --devices=1 --nccl=2.27"
    keys = [
        step.step.makes.key for one in (made, told) if (step := one.step_named("verify")) and step.step.makes
    ]
    assert len(set(keys)) == 2


def test_the_way_in_judges_the_overlay_and_binds_the_roles() -> None:
    run = attrs.evolve(asked("trl"), train=attrs.evolve(asked().train, use="x"))
    owners = Storage(path="/fs/env", source="doc", share="project", owners=("kari",))
    train = plan(run, site(env=owners), apptainer, Here(), pins=PINS).step_named("train")
    assert train is not None
    words = shell.words(train.around.wrap, BINDING)
    assert words.startswith(
        "apptainer --silent exec --nv --bind=/fs/checkpoints --bind=/fs/env "
        '--bind=/fs/runs --bind="${HPC_RUN}" --bind=/fs/env/myenv_'
    )
    assert ":/user-software:image-src=/ /fs/images/pytorch-25.06-py3_" in words
    job = [shell.line(line, BINDING) for line in train.around.job]
    assert job[-1].startswith("hpc_require /fs/env/myenv_")
    assert job[-1].endswith(" kari")
    assert "mkdir -p /fs/checkpoints" in job


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    (folder / "none").mkdir(parents=True)
    wheel(folder, "alpha", "1.0", requires="torch>=2.7")
    wheel(folder, "intel", "1.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    return folder


def locked(house: Path, *names: str) -> list[Pin]:
    run = asked(
        *names,
        image=str(house / "image.sif"),
        has="has.txt",
        texts=LIST,
        index_url=f"file://{house}/none",
        find_links=(str(house),),
    )
    return apptainer.pin(run, site(), BINDING, (), Tools())


def test_what_the_image_has_is_kept_and_not_installed_again(house: Path) -> None:
    (alpha,) = locked(house, "alpha")
    assert (alpha.name, alpha.value.split()[0]) == ("alpha", "1.0")
    assert alpha.value.split()[1].startswith("sha256:")


def test_another_version_of_what_the_image_has_is_refused(house: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        locked(house, "alpha", "torch==2.9.0")
    (problem,) = caught.value.problems
    assert "the image has torch 2.8.0a0+abc, which is not replaced" in problem.notes[-1]
    assert problem.hint == '[environment.apptainer]\nreplace = ["torch"]'


@pytest.mark.parametrize("name", ["no-such-package", "intel"])
def test_what_is_not_there_or_not_for_the_target_is_refused(house: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        locked(house, name)
    assert caught.value.problems[0].code == "no-solution"


def test_an_image_file_for_other_machines_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.sif"
    file.write_bytes(b"\0" * 32 + b"SIF_MAGIC\x0001\x0002\0" + bytes(16))
    with pytest.raises(ConfigError) as caught:
        apptainer.pin(asked(image=str(file)), site(), BINDING, (), Tools())
    assert caught.value.problems[0].code == "image-arch"
    assert "is made for x86_64, and the training nodes are aarch64" in caught.value.problems[0].message
