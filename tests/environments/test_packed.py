"""One archive a node unpacks on its own disk, and the proof where training will run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster, Place, Storage
from hpctrain.model.run import Environment, Package, Resources, RunSpec
from hpctrain.model.step import Need
from hpctrain.model.words import Cmd
from hpctrain_job.tree import digest
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels import packages_spec, packed, verified
from hpctrain_plugins.environments.wheels.options import Expect
from tests.conftest import ROOT, needs
from tests.defaults.rig import World, cluster, plan
from tests.environments.test_technologies import pinned
from tests.run.users import GROUP, MALLORY, USER, run_as
from tests.run.users import project as project

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def with_disk() -> Cluster:
    on = cluster(arch=os.uname().machine)
    disk = Storage(path="/mnt/bb/{user}", source="doc", node_local=True)
    return attrs.evolve(on, storage={**on.storage, packages_spec.NODE: disk})


def asked(shelf: Path, **options: object) -> RunSpec:
    made = venv.Options(find_links=(str(shelf),), build=(), **options)  # type: ignore[arg-type]
    env = Environment(use="venv", python=PYTHON, packages=(Package.parse("beta"),), options=made)
    return RunSpec(name="r", cluster="toy", environment=env)


def unpack(archive: Path, folder: Path, prefix: Path, *more: Path, step: str = "train", code: int = 0) -> str:
    """What node.sh runs on each node."""
    helpers = folder.parent.parent / "code"
    helpers.mkdir(exist_ok=True)
    shutil.copy(ROOT / "core/hpctrain/render/publish.sh", helpers)
    script = folder.parent.parent / "unpack.sh"
    script.write_text(packed.SCRIPT)
    env = {"PATH": "/usr/bin:/bin", "HPC_STEP": step, "HOSTNAME": "nid001", "HPC_RUN": str(helpers.parent)}
    argv = ("bash", str(script), str(archive), str(folder), str(prefix), *map(str, more))
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return World(tmp_path / "fs", tmp_path / "files", env={"PATH": path, "PIP_NO_INDEX": "1"})


def test_the_copy_of_a_node_is_whole_and_its_own(shelf: Path, world: World, tmp_path: Path) -> None:
    made = plan(asked(shelf, pack=True), with_disk(), venv, pins=pinned(shelf))
    assert [s.name for s in made.steps] == ["env", "pack"]
    world.execute(made)
    link, archive = world.published(made, "env"), world.published(made, "pack")
    (tmp_path / "node").mkdir()
    own = tmp_path / "node/hpctrain/venv-1"
    assert unpack(archive, own, link) == ""
    assert unpack(archive, own, link) == ""  # it is there
    said = subprocess.run([own / "bin/alpha-say"], capture_output=True, text=True, check=True).stdout.strip()
    assert said == str(own)  # the scripts run the node's Python
    assert [p.name for p in own.parent.iterdir()] == [own.name]


@pytest.mark.parametrize("deep", [0, 1], ids=["the environment", "the folder above"])
def test_what_another_user_made_on_the_node_is_not_the_environment(tmp_path: Path, deep: int) -> None:
    needs("root", os.geteuid() == 0, "only root can give a folder to another user")
    folder = tmp_path / "node/hpctrain/venv-1"
    (folder / "bin").mkdir(parents=True)
    planted = (folder, *folder.parents)[deep]
    os.chown(planted, 61002, 61002)
    refusal = unpack(tmp_path / "none.tar", folder, tmp_path, code=7)
    assert f"{planted} belongs to 61002, who is not among the owners you accept; remove it" in refusal


PLANTS = {
    "the environment": "mkdir -p hpctrain/venv-1/bin; cp evil hpctrain/venv-1/bin/said",
    "a link to hers": "mkdir -p mine/venv-1/bin; cp evil mine/venv-1/bin/said; ln -s mine hpctrain",
    "a link in the folder": "mkdir -p hpctrain her/bin; cp evil her/bin/said; ln -s ../her hpctrain/venv-1",
    "a link to nothing": "ln -s mine hpctrain",
    "a folder for all": "mkdir -m 1777 hpctrain",
    "a folder for all, without a sticky bit": "mkdir -m 0777 hpctrain",
    "a folder of the group": "mkdir -m 2770 hpctrain",
    "a folder that nobody enters": "mkdir -m 0 hpctrain",
    "a file": "touch hpctrain",
    "a pipe": "mkfifo hpctrain",
    "a link to the user's own folder": "ln -s ../code hpctrain",
    "an empty environment": "mkdir -p hpctrain/venv-1; chmod 777 hpctrain hpctrain/venv-1",
}
"""What she does in a node's folder that is everybody's, as /dev/shm is, before the user's job comes."""


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_that_another_user_left_on_the_node_is_run(project: Path, plant: str) -> None:
    """Refused, or the shared environment instead: and not a byte of the user's goes into what is hers."""
    node, code, shared = (project / name for name in ("node", "code", "shared"))
    node.mkdir()
    node.chmod(0o1777)
    code.mkdir()
    shutil.copy(ROOT / "core/hpctrain/render/publish.sh", code)
    (shared / "bin").mkdir(parents=True)
    (shared / "bin/said").write_text("shared")
    subprocess.run(["tar", "-cf", "shared.tar", "-C", "shared", "."], cwd=project, check=True)
    (project / "unpack.sh").write_text(packed.SCRIPT)
    for path in (code, *project.rglob("shared*"), *code.iterdir(), project / "unpack.sh"):
        os.chown(path, USER, GROUP)
        path.chmod(0o755)
    planted = f"cd node; echo evil >evil; {PLANTS[plant]}"
    assert run_as(MALLORY, ["bash", "-euc", f"umask 0; {planted}"], project).returncode == 0
    places = (project / "shared.tar", node / "hpctrain/venv-1", shared)
    argv = ["bash", "unpack.sh", *map(str, places)]
    done = run_as(USER, argv, project, HPC_STEP="train", HPC_RUN=str(project), HOSTNAME="nid001")
    assert done.returncode in (0, 7), done.stderr
    if done.returncode == 0:
        assert "reads its environment from the shared disk" in done.stderr
    else:
        assert "remove it, or set  pack = false" in done.stderr
    assert not [path for path in node.rglob("*") if path.lstat().st_uid == USER]
    assert {path.name for path in code.iterdir()} == {"publish.sh"}


def test_a_node_without_room_reads_the_shared_one(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    (tmp_path / "node/hpctrain").touch()  # in the way of a folder
    said = unpack(tmp_path / "none.tar", tmp_path / "node/hpctrain/venv-1", tmp_path)
    assert "nid001 reads its environment from the shared disk" in said
    (tmp_path / "node/hpctrain").unlink()
    said = unpack(tmp_path / "none.tar", tmp_path / "node/hpctrain/venv-1", tmp_path)
    assert "was not unpacked" in said
    assert not list((tmp_path / "node/hpctrain").iterdir())


def archives(tmp_path: Path) -> tuple[Path, Path]:
    """The archive on the shared disk and the node's copy of it, which differ in their content alone."""
    for name in ("shared", "broadcast"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/said").write_text(name.ljust(9))
        subprocess.run(["tar", "-cf", f"{name}.tar", "-C", name, "."], cwd=tmp_path, check=True)
    return tmp_path / "shared.tar", tmp_path / "broadcast.tar"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_copy_that_another_user_put_there_is_not_taken(tmp_path: Path, is_link: bool) -> None:
    """A node's folder may be everybody's to write in, and the size of the archive is no secret."""
    needs("root", os.geteuid() == 0, "only root can give a file to another user")
    archive, copy = archives(tmp_path)
    planted = tmp_path / "planted.tar"
    if is_link:
        planted.symlink_to(copy)
    else:
        copy.rename(planted)
        os.chown(planted, 61002, 61002)
    own = tmp_path / "node/hpctrain/venv-1"
    (tmp_path / "node").mkdir()
    assert unpack(archive, own, tmp_path, planted) == ""
    assert (own / "bin/said").read_text().strip() == "shared"
    assert planted.exists()


@pytest.mark.parametrize("whole", [True, False])
def test_a_copy_that_was_broadcast_is_taken_when_it_is_whole(tmp_path: Path, whole: bool) -> None:
    archive, copy = archives(tmp_path)
    own = tmp_path / "node/hpctrain/venv-1"
    if not whole:  # as sbcast leaves it on some nodes when it fails
        os.truncate(copy, 4096)
    (tmp_path / "node").mkdir()
    assert unpack(archive, own, tmp_path, copy) == ""
    assert (own / "bin/said").read_text().strip() == ("broadcast" if whole else "shared")
    assert not copy.exists()


@pytest.mark.parametrize(("nodes", "spreads"), [(2, False), (48, False), (64, True), (9400, True)])
def test_it_is_broadcast_where_that_is_predicted_to_be_quicker(
    shelf: Path, nodes: int, spreads: bool
) -> None:
    run = attrs.evolve(asked(shelf, pack=True), resources=Resources(nodes=nodes))
    many = attrs.evolve(with_disk(), hardware=attrs.evolve(with_disk().hardware, nodes=9999))
    layer = venv.enter_env(run=run, cluster=many, pins=())
    (unpacked,) = layer.node
    assert isinstance(unpacked, Cmd)
    told = [c.argv for c in layer.job if isinstance(c, Cmd) and c.argv[0] != "hpc_trust"]
    if not spreads:
        assert (told, len(unpacked.argv)) == ([], 5)
        return
    ((program, archive, copy),) = told
    assert program == "hpc_spread"
    assert (archive, copy) == (unpacked.argv[2], unpacked.argv[5])
    assert copy.role == packages_spec.NODE  # type: ignore[union-attr]


def test_only_training_unpacks(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    unpack(tmp_path / "none.tar", tmp_path / "node/hpctrain/venv-1", tmp_path, step="verify")
    assert not (tmp_path / "node/hpctrain").exists()


def test_the_nodes_copy_goes_first_and_the_shared_one_behind(shelf: Path) -> None:
    layer = venv.enter_env(run=asked(shelf, pack=True), cluster=with_disk(), pins=())
    paths = [v.value for v in layer.env if v.name == "PATH"]
    assert [p.role for p in paths] == ["env", packages_spec.NODE]  # type: ignore[union-attr]  # the last is in front
    plain = venv.enter_env(run=asked(shelf), cluster=with_disk(), pins=())
    assert (len(plain.node), len(layer.node)) == (0, 1)


def test_nodes_without_a_disk(shelf: Path) -> None:
    with pytest.raises(ConfigError, match="names no disk of its nodes"):
        venv.build_env(run=asked(shelf, pack=True), cluster=cluster(), pins=())


GPU = (
    Place(name="login", provides=(Need.NETWORK, Need.TARGET), here=True, source="doc"),
    Place(name="compute", provides=(Need.TARGET, Need.GPU), source="doc"),
)


def test_what_needs_a_gpu_is_proven_on_one(shelf: Path) -> None:
    on = cluster(*GPU, arch="x86_64", gpu_kind="cuda", gpus_per_node=4)
    spec = attrs.evolve(
        asked(shelf),
        environment=Environment(use="venv", python="3.11", packages=(Package.parse("torch==2.9.0"),)),
    )
    proof = plan(spec, on, venv).step_named("verify")
    assert proof is not None
    assert (proof.step.place, proof.step.inside, proof.step.launch.gpus_per_node) == ("compute", True, 1)
    words = [c.argv for c in proof.step.commands if isinstance(c, Cmd)]
    assert [w[2] for w in words] == ["hpctrain_job.imports", "hpctrain_job.gpus"]
    # Nothing to see on a GPU, or nobody wants to: no job in front of training.
    assert plan(asked(shelf), on, venv).step_named("verify") is None
    quiet = attrs.evolve(spec.environment, options=venv.Options(verify=False))
    assert plan(attrs.evolve(spec, environment=quiet), on, venv).step_named("verify") is None


def test_what_is_expected_decides_the_proof_and_not_the_environment(shelf: Path) -> None:
    def keys(**options: object) -> tuple[str, str]:
        on = cluster(*GPU, arch="x86_64", gpu_kind="cuda", gpus_per_node=4)
        made = {s.name: s.step.makes for s in plan(asked(shelf, **options), on, venv).steps}
        return made["env"].key, made["verify"].key  # type: ignore[union-attr]

    one = keys(expect=Expect(cuda="12.6", symbol="ncclCommShrink"))
    two = keys(expect=Expect(cuda="12.8"))
    assert one[0] == two[0]
    assert one[1] != two[1]


def test_a_cluster_may_add_to_the_proof(shelf: Path) -> None:
    on = cluster(*GPU, arch="x86_64", gpu_kind="cuda", gpus_per_node=4)
    steps = venv.build_env(run=asked(shelf, expect=Expect(devices=4)), cluster=on, pins=())
    more = verified.extended(steps, Cmd.of("python", "check.py"), nccl="2.27")
    assert more[:-1] == steps[:-1]
    assert more[-1].commands[-1] == Cmd.of("python", "check.py")
    assert more[-1].makes is not None
    assert steps[-1].makes is not None
    assert more[-1].makes.key != steps[-1].makes.key


def test_the_proof_is_kept(shelf: Path, world: World) -> None:
    code = "import beta, sys; print('own check'); sys.exit(0)"
    spec = asked(shelf, expect=Expect(command=("python", "-c", code)))
    made = plan(spec, with_disk(), venv, pins=pinned(shelf))
    assert [s.name for s in made.steps] == ["env", "verify"]
    log = world.execute(made).log("verify").read_text()
    assert "own check" in log
    assert "beta 1.0" in world.published(made, "verify").read_text()
    assert digest(world.published(made, "verify"))
    assert "exists: " in world.execute(made).log("verify").read_text()


@pytest.mark.parametrize(("nodes", "packs"), [(1, False), (4, False), (256, True)])
def test_auto_packs_where_the_start_takes_long(shelf: Path, nodes: int, packs: bool) -> None:
    many = attrs.evolve(with_disk(), hardware=attrs.evolve(with_disk().hardware, nodes=512, gpus_per_node=8))
    run = attrs.evolve(asked(shelf, pack="auto"), resources=Resources(nodes=nodes))
    steps = [s.name for s in venv.build_env(run=run, cluster=many, pins=()) or ()]
    assert ("pack" in steps) is packs
    without = attrs.evolve(many, storage={k: v for k, v in many.storage.items() if k != packages_spec.NODE})
    assert "pack" not in [s.name for s in venv.build_env(run=run, cluster=without, pins=()) or ()]
