"""Images in jobs of ordinary users: Apptainer on Olivia, podman and `--environment` on Alps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.twin import rootfs
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

IMAGE = """
cd && mkdir -p .edf img/{bin,proc,sys,dev,tmp,etc,root,home,run,var/tmp,data,cluster}
cp /bin/busybox img/bin/
ln -sf busybox img/bin/sh; for f in cat env pwd ls touch id; do ln -sf busybox img/bin/$f; done
echo fromimage >img/marker; mksquashfs img img.sqsh -quiet -no-progress -noappend >/dev/null
"""


def job(twin: Twin, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A step on a compute node, as alice."""
    ask = ("-A", twin.site.overlay.account, "-t", "2", "-N1", "--gpus-per-node=1")
    return twin.run("srun", *ask, *words, user="alice", env=env)


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia, with an image in alice's home."""
    one = twin("olivia")
    one.sh(IMAGE)
    return one


@pytest.fixture(scope="module")
def alps(twin: Start) -> Twin:
    """Alps, with an image in alice's home."""
    one = twin("alps")
    one.sh(IMAGE)
    return one


def test_apptainer_enters_an_image_in_a_job(olivia: Twin) -> None:
    which = rootfs.apptainer(rootfs.path())
    print(f"apptainer: {which}")
    if not which.startswith("stand-in"):
        assert which.startswith(olivia.sh("apptainer version").strip())
    home = olivia.site.home("alice")
    done = job(olivia, "apptainer", "exec", "--bind=/cluster", f"{home}/img.sqsh", "/bin/cat", "/marker")
    assert (done.returncode, done.stdout) == (0, "fromimage\n"), done.stderr


def test_a_run_in_an_image(olivia: Twin) -> None:
    user = User(olivia, folder="image")
    for host in olivia.site.hosts:  # bound into every image; the twin has no Slingshot
        olivia.run("bash", "-c", "mkdir -p /usr/lib64 && touch /usr/lib64/libcxi.so.1", node=host.name)
    image = f"{olivia.site.home('alice')}/python.sqsh"
    olivia.sh(f"{EXAMPLE}/image.sh {image}")
    user.put("run.toml", (EXAMPLE / "image.toml").read_text().replace("IMAGE", image))
    user.submit()
    path = user.until("done", seconds=90)["path"]
    for rank in (0, 1):
        assert f"rank {rank} /usr True" in olivia.sh(f"cat {path}/logs/train.rank{rank}.log")


def test_podman_builds_in_a_job_without_rights(alps: Twin) -> None:
    alps.sh('cd && printf \'FROM scratch\\nCOPY img /\\nRUN ["/bin/touch", "/built"]\\n\' >Containerfile')
    line = (
        "cd && export XDG_RUNTIME_DIR=/dev/shm/$USER/run; mkdir -p -m 700 $XDG_RUNTIME_DIR && "
        "podman --root /dev/shm/$USER/store build -q --isolation=chroot -t test:1 . && "
        "podman --root /dev/shm/$USER/store image inspect -f '{{len .RootFS.Layers}}' test:1"
    )
    done = job(alps, "bash", "-c", line)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "2"


@pytest.fixture
def edf(alps: Twin) -> Iterator[Twin]:
    """Alps with an empty folder for descriptions."""
    alps.sh("rm -rf ~/.edf && mkdir -p ~/.edf")
    yield alps
    left = alps.run("ls", "-A", "/run/edf", node=alps.site.hosts[0].name).stdout
    assert left == ""


def describe(twin: Twin, text: str, name: str = "mine") -> None:
    """Write an EDF of alice's with the image in front."""
    home = twin.site.home("alice")
    twin.write(f"{home}/.edf/{name}.toml", text.replace("IMAGE", f'image = "{home}/img.sqsh"'))


def test_an_environment_is_entered(edf: Twin) -> None:
    describe(edf, 'IMAGE\nworkdir = "/data"\n[env]\nMINE = "of ${USER}"\nHOST_ONLY = ""\nDOLLAR = "$${x}"\n')
    line = "cat /marker; pwd; id -u; env; touch /written && echo writable"
    done = job(edf, "--environment=mine", "/bin/sh", "-c", line, HOST_ONLY="1", KEPT="2")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:3] == ["fromimage", "/data", "61001"]
    assert {"MINE=of alice", "KEPT=2", "DOLLAR=${x}", "writable"} <= set(said)
    assert not any(word.startswith("HOST_ONLY=") for word in said)


def test_mounts_flags_and_inheritance(edf: Twin) -> None:
    scratch = edf.site.fill(edf.site.cluster.storage["runs"].path, "alice").partition("/hpctrain")[0]
    edf.sh(f"echo outside >{scratch}/file")
    describe(
        edf, f'IMAGE\nmounts = ["{scratch}:/scratch:ro+private"]\n[env]\nA = "base"\nB = "base"\n', "base"
    )
    home = edf.site.home("alice")
    describe(
        edf,
        'base_environment = "base"\nwritable = false\n'
        f'mounts = ["{home}/img.sqsh:/data:sqsh"]\n[env]\nB = "mine"\n',
    )
    line = "cat /scratch/file /data/marker; echo $A $B; touch /scratch/x /x || echo readonly"
    done = job(edf, "--environment=mine", "/bin/sh", "-c", line)
    assert done.stdout.splitlines() == ["outside", "fromimage", "base mine", "readonly"], done.stderr


def test_annotations_are_nested_names(edf: Twin) -> None:
    sets = edf.site.cluster.facts["container_engine"]["sets"]
    head = "IMAGE\n[annotations]\n"
    describe(edf, f'{head}com.hooks.aws_ofi_nccl.enabled = "true"\n', "nested")
    describe(edf, f'{head}"com.hooks.aws_ofi_nccl.enabled" = "true"\n', "quoted")
    nested = job(edf, "--environment=nested", "/bin/env").stdout.splitlines()
    quoted = job(edf, "--environment=quoted", "/bin/env").stdout.splitlines()
    assert {f"{name}={value}" for name, value in sets.items()} <= set(nested)
    assert not any(line.startswith("NCCL_PXN_DISABLE=") for line in quoted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('IMAGE\nworkdir = "/${NOT_SET_HERE}"\n', "variable NOT_SET_HERE is not set"),
        ('IMAGE\nmounts = ["/no/such/folder:/x"]\n', "no such file"),
        ('IMAGE\nmounts = ["/users/bob:/x"]\n', "not yours to read"),
        ('IMAGE\nmounts = ["/tmp:/x:fast"]\n', "unknown flag fast"),
        ('IMAGE\nwork_dir = "/"\n', "work_dir: unknown"),
        ('image = "library/ubuntu:24.04"\n', "no registry"),
        ('IMAGE\nworkdir = "/nowhere"\n', "No such file"),
        ('base_environment = "mine"\n', "more than 10 levels"),
        ("IMAGE\n[env]\nA = 1\n", "must be a string"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, edf: Twin) -> None:
    describe(edf, text)
    done = job(edf, "--environment=mine", "/bin/cat", "/marker")
    assert done.returncode != 0
    assert "fromimage" not in done.stdout
    assert said in done.stderr


def test_no_shell_reads_what_users_write(edf: Twin) -> None:
    bad = "x'; touch ${HOME}/owned; $(touch /tmp/owned) '"
    describe(edf, f'IMAGE\nmounts = ["/etc:/{bad}"]\n[env]\nA = "{bad}"\n', bad.replace("/", "_"))
    home, node = edf.site.home("alice"), edf.site.hosts[0].name
    done = job(edf, f"--environment={home}/.edf/{bad.replace('/', '_')}.toml", "/bin/env")
    assert f"A={bad.replace('${HOME}', home)}" in done.stdout, done.stderr
    for path in (f"{home}/owned", "/tmp/owned"):
        assert edf.run("test", "-e", path, node=node).returncode != 0


def test_an_unknown_name(edf: Twin) -> None:
    done = job(edf, "--environment=other", "/bin/true")
    assert "no other.toml in" in done.stderr
