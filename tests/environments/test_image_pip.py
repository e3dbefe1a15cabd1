"""Packages on top of an image like NVIDIA's, with a real pip: nothing of it is replaced that nobody named."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError, StepFailed
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Pin
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.environments import apptainer, pip
from tests.defaults.rig import World, cluster, plan
from tests.environments import nvidia
from tests.environments.small_wheel import wheel
from tests.environments.test_image import header

PROGRAMS = Path(__file__).with_name("programs")
CODES = {"x86_64": b"02", "aarch64": b"04"}
HERE = os.uname().machine


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> nvidia.Image:
    return nvidia.Image(tmp_path_factory.mktemp("nvidia") / "image")


class Rig:
    """A cluster whose only image is the stand-in, a folder of wheels, and one lock after the other."""

    def __init__(self, folder: Path, image: nvidia.Image) -> None:
        self.folder, self.image = folder, image
        self.wheels = nvidia.index(folder / "wheels")
        wheel(self.wheels, "wheel", "0.45.0")
        nvidia.source(self.wheels, "flash_attn", "2.5.8")
        (self.wheels / "none").mkdir()
        (folder / "own").mkdir()
        self.sif = folder / "base.sif"
        self.sif.write_bytes(header(CODES[HERE]))
        self.world = World(
            folder=folder / "roots",
            files=folder,
            env={"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "STAND_IN": str(image.folder)},
        )
        made = cluster(arch=HERE)
        images = Storage(path="/fs/images", source="doc")
        self.cluster: Cluster = attrs.evolve(made, storage={**made.storage, "images": images})
        self.binding = Binding(
            roots={role: str(self.world.root(role)) for role in self.cluster.storage}, user="u"
        )

    def run(self, *names: str, compiled: tuple[str, ...] = (), **options: object) -> RunSpec:
        fields = {
            "image": str(self.sif),
            "index_url": f"file://{self.wheels}/none",
            "find_links": (str(self.wheels),),
            **options,
        }
        return RunSpec(
            name="r",
            cluster="toy",
            environment=Environment(
                use="apptainer",
                packages=tuple(map(Package.parse, names)),
                compile=tuple(map(Package.parse, compiled)),
                options=apptainer.Options(**fields),  # type: ignore[arg-type]
            ),
        )

    def pins(self, run: RunSpec, before: tuple[Pin, ...] = ()) -> tuple[Pin, ...]:
        return tuple(apptainer.pin(run, self.cluster, self.binding, before, Tools()))

    def plan(self, run: RunSpec, pins: tuple[Pin, ...]) -> Plan:
        return plan(run, self.cluster, apptainer, pins=pins)

    def built(self, run: RunSpec, pins: tuple[Pin, ...] = ()) -> Built:
        made = self.plan(run, pins)
        return Built(self, made, self.world.execute(made))

    def failed(self, run: RunSpec, pins: tuple[Pin, ...]) -> str:
        """The log of a build that must fail, and leave nothing."""
        with pytest.raises(StepFailed):
            self.built(run, pins)
        assert not list(self.world.root("env").glob("*.sqsh"))
        (log,) = self.world.root("runs").rglob("env.log")
        return log.read_text()

    def asked(self) -> None:
        """The step `inspect` has run once."""
        run = self.run("trl")
        made = self.plan(run, self.pins(run))
        self.world.execute(attrs.evolve(made, steps=made.steps[:1]))


class Built:
    """What came of a run: its overlay and its proof."""

    def __init__(self, rig: Rig, made: Plan, directory: RunDirectory) -> None:
        self.rig, self.directory = rig, directory
        (name,) = [s.step.makes.filename for s in made.steps if s.name == "env" and s.step.makes]
        self.overlay = rig.world.root("env") / name
        self.steps = [s.name for s in made.steps]
        (proof,) = [s.step.makes.filename for s in made.steps if s.name == "verify" and s.step.makes]
        self.proof = (rig.world.root("env") / proof).read_text()

    def holds(self) -> dict[str, str]:
        """The distributions in the overlay, but for the venv's own pip."""
        folder = self.rig.folder / f"unpacked-{self.overlay.name}"
        folder.mkdir()
        shutil.unpack_archive(self.overlay, folder, "tar")
        rows = [path.name.removesuffix(".dist-info").split("-", 1) for path in folder.rglob("*.dist-info")]
        return {name: version for name, version in rows if name not in ("pip", "setuptools")}


def causes(text: str) -> list[str]:
    return [rule.name for rule in apptainer.diagnose_rules() if re.search(rule.pattern, text)]


@pytest.fixture
def rig(tmp_path: Path, image: nvidia.Image) -> Rig:
    return Rig(tmp_path, image)


def test_an_image_that_nobody_asked_keeps_all_it_has(rig: Rig) -> None:
    run = rig.run("trl", "tokenizers")
    made = rig.built(run, rig.pins(run))
    assert made.steps == ["inspect", "env", "verify"]
    # regex is not there, and the image's constraint file says which one fits it.
    assert made.holds() == {"trl": "0.23.1", "tokenizers": "0.22.0", "regex": "2024.11.6"}
    assert "trl 0.23.1" in made.proof


def test_a_lock_resolves_against_what_the_image_has(rig: Rig) -> None:
    rig.asked()
    run = rig.run("trl", "tokenizers")
    pins = rig.pins(run)
    kinds = {pin.kind: pin for pin in pins}
    assert "\n" not in kinds["has"].value
    assert "# constraint-file 309 lines" in kinds["has"].value
    assert "# cuda 12.8.1" in kinds["has"].value
    resolved = {pin.name: pin.value.split()[0] for pin in pins if pin.kind == "pypi"}
    assert resolved == {"trl": "0.23.1", "tokenizers": "0.22.0", "regex": "2024.11.6"}
    made = rig.built(run, pins)
    assert made.steps == ["env", "verify"]
    assert made.holds() == resolved


def test_the_list_stays_in_the_lock_where_the_cluster_is_not(rig: Rig) -> None:
    rig.asked()
    before = rig.pins(rig.run("trl"))
    shutil.rmtree(rig.world.root("images"))
    rig.sif.unlink()
    again = rig.pins(rig.run("trl", "tokenizers"), before)
    facts = [pin for pin in before if pin.kind in ("has", "image")]
    assert len(facts) == 2
    assert [pin for pin in again if pin.kind in ("has", "image")] == facts
    assert "tokenizers" in {pin.name for pin in again}


def test_a_list_that_somebody_else_left_is_not_read(rig: Rig) -> None:
    rig.asked()
    (listed,) = rig.world.root("images").glob("packages-*.txt")
    os.chown(listed, 12345, 12345, follow_symlinks=False)
    assert "has" not in {pin.kind for pin in rig.pins(rig.run("trl"))}


@pytest.mark.parametrize("name", ["numpy==2.5.5", "needs_new"])
def test_what_the_image_has_otherwise_is_refused_with_the_way_to_replace_it(rig: Rig, name: str) -> None:
    rig.asked()
    with pytest.raises(ConfigError) as caught:
        rig.pins(rig.run(name))
    (problem,) = caught.value.problems
    own = {"numpy==2.5.5": "numpy 1.26.4", "needs_new": "safetensors 0.5.3"}[name]
    assert f"the image has {own}, which is not replaced" in problem.notes[-1]
    assert problem.hint == f'[environment.apptainer]\nreplace = ["{own.split()[0]}"]'


def test_what_is_named_is_replaced_and_the_plan_says_so(rig: Rig) -> None:
    rig.asked()
    run = rig.run("needs_new", replace=("safetensors", "not-there"))
    pins = rig.pins(run)
    said = {p.code: p for p in rig.plan(run, pins).problems if not p.fatal}
    assert "replaces safetensors 0.5.3" in said["image-replaced"].message
    assert "309 lines" in said["image-replaced"].notes[-1]
    assert "not-there" in said["image-replace"].message
    made = rig.built(run, pins)
    assert made.holds() == {"needs_new": "1.0", "safetensors": "0.8.0"}
    assert "safetensors 0.8.0 /user-software/lib/" in made.proof


def test_without_a_lock_the_job_refuses_and_diagnose_knows_why(rig: Rig) -> None:
    text = rig.failed(rig.run("numpy==2.5.5"), ())
    assert "The user requested (constraint) numpy==1.26.4" in text
    assert causes(text) == ["image-kept"]


@pytest.mark.parametrize("locked", [False, True])
def test_what_is_compiled_replaces_an_older_one_and_is_what_imports(rig: Rig, *, locked: bool) -> None:
    rig.asked()
    run = rig.run("trl", compiled=("flash-attn==2.5.8",))
    pins = rig.pins(run) if locked else ()
    made = rig.built(run, pins)
    held = made.holds()
    assert held["flash_attn"] == "2.5.8"
    assert held.keys() == {"trl", "flash_attn", "wheel"}
    assert "flash-attn 2.5.8 /user-software/lib/" in made.proof


def test_a_list_in_the_run_file_is_proven_with_every_line_of_it(rig: Rig) -> None:
    """Also `pip==…`, of which the venv has its own."""
    listed = rig.image.listed()
    assert "\npip==" in listed
    run = attrs.evolve(rig.run("trl", has="has.txt"), texts={"has.txt": listed})
    made = rig.built(run, rig.pins(run))
    assert made.steps == ["env", "verify"]
    assert made.holds() == {"trl": "0.23.1"}


def test_another_image_than_the_list_is_refused_before_anything_is_installed(rig: Rig) -> None:
    listed = rig.image.listed().replace("numpy==1.26.4", "numpy==1.26.3")
    run = attrs.evolve(rig.run("trl", has="has.txt"), texts={"has.txt": listed})
    text = rig.failed(run, rig.pins(run))
    assert "the image is not what its list says: numpy 1.26.3 (here 1.26.4)" in text
    assert causes(text) == ["image-not-as-known"]


def test_what_pip_would_do_without_all_this(rig: Rig) -> None:
    """The image's own file refuses another pin even with `--no-deps`, and takes an old version in silence."""
    line = ("python3", "-m", "pip", "install", "--dry-run", "--no-index", f"--find-links={rig.wheels}")
    refused = rig.image.run(*line, "--no-deps", "regex==2026.1.1", code=1)
    assert "ResolutionImpossible" in refused.stderr
    assert "Would install regex-2024.11.6" in rig.image.run(*line, "regex").stdout


def test_a_constraint_file_that_pip_conf_names_does_not_count_either(rig: Rig) -> None:
    (rig.folder / "pip").mkdir()
    (rig.folder / "pip/pip.conf").write_text(f"[global]\nconstraint = {rig.image.constraint}\n")
    line = (*pip.install("python3"), "--dry-run", "--no-index", f"--find-links={rig.wheels}", "regex")
    told = {"XDG_CONFIG_HOME": str(rig.folder)}
    words = [str(word) for word in line]
    assert "Would install regex-2026.1.1" in rig.image.run(*words, env=told).stdout
    alone = ["env", "--unset=PIP_CONSTRAINT", *words[2:]]
    assert "Would install regex-2024.11.6" in rig.image.run(*alone, env=told).stdout
