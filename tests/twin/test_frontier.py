"""What a rank finds on Frontier: a Python on its own disk, caches, modules, its number; and no way out."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready, shadow
from tests.twin.site_file import ROOT
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"
UV = (
    "module load miniforge3/23.11.0-0 && python3 -m venv ~/uv"
    " && ~/uv/bin/pip install -q --disable-pip-version-check uv"
)
RUN = f"""\
name = "look"
cluster = "frontier"

[resources]
nodes = 2
time = "10m"
ask = {{ slurm = ["--constraint=nvme"] }}

[environment]
python = "{SHORT}"
packages = ["twin-pure"]

[environment.conda]
first = []
verify = false
pack = true

[assets]
look = {{ path = "look.py" }}

[train]
use = "command"

[train.command]
argv = ["python", "{{assets.look}}"]
"""
LOOK = """\
import json, os, pathlib, shutil, socket, sys
import twin_pure

def route():
    try:
        socket.create_connection(("huggingface.co", 443), timeout=5)
    except OSError as error:
        return type(error).__name__
    return "reached"

caches = {n: pathlib.Path(os.environ[n]).is_dir() for n in ("MIOPEN_USER_DB_PATH", "TRITON_CACHE_DIR")}
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "HPC_NODE_RANK", "ROCM_HOME", "CC", "NCCL_NET", "CONDA_PREFIX")
seen = {"prefix": sys.prefix, "caches": caches, "conda": shutil.which("conda"), "route": route()}
seen |= {n: os.environ[n] for n in names} | {"modules": os.environ.get("LOADEDMODULES", "").split(":")}
out = pathlib.Path(os.environ["HPC_RUN"], f"seen-{os.environ['RANK']}.json")
out.write_text(json.dumps(seen))
print("NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)")
"""


SPREAD = """\
#!/bin/bash
set -euo pipefail
export HPC_NODES=$SLURM_JOB_NUM_NODES HPC_STEP=train
. ./slurm_start.sh
. ./job.sh
hpc_spread big /mnt/bb/alice/big
echo "shared $(sha256sum <big | cut -d' ' -f1)"
srun -N2 --ntasks-per-node=1 bash -c 'sum=$(sha256sum </mnt/bb/alice/big); echo "node $HOSTNAME ${sum%% *}"'
hpc_spread big /nowhere/big
echo 'went on'
"""


@pytest.fixture(scope="module")
def frontier(twin: Start) -> Twin:
    """Frontier with its own index, and uv for alice."""
    one = ready(twin("frontier"))
    shadow(one)
    one.sh(UV)
    return one


@pytest.fixture
def user(frontier: Twin) -> User:
    """Somebody with a run that looks around."""
    found = User(frontier, folder="look")
    found.put("run.toml", RUN)
    found.put("look.py", LOOK)
    return found


def words(user: User) -> dict[str, str]:
    """A path with the user's uv."""
    return {"PATH": f"/usr/local/bin:/usr/bin:/bin:{user.twin.site.home(user.name)}/uv/bin"}


def test_a_rank_starts_from_its_node_s_disk(user: User) -> None:
    account = ("--account", user.twin.site.overlay.account)
    done = user.hpctrain("submit", "run.toml", *account, "--wait", timeout=300, env=words(user))
    assert done.returncode == 0, done.stdout + done.stderr + user.log()
    folder = user.status()["path"]
    ranks = [json.loads(user.twin.sh(f"cat {folder}/seen-{n}.json")) for n in (0, 1)]
    for number, seen in enumerate(ranks):
        assert seen["prefix"].startswith("/mnt/bb/alice/hpctrain/conda-")
        assert seen["CONDA_PREFIX"].startswith("/lustre/orion/abc123/proj-shared/hpctrain/env/conda-")
        assert seen["caches"] == {"MIOPEN_USER_DB_PATH": True, "TRITON_CACHE_DIR": True}
        assert seen["conda"] is None  # its module is gone: its programs would be found first
        assert seen["route"] != "reached"
        assert (seen["RANK"], seen["LOCAL_RANK"], seen["WORLD_SIZE"]) == (str(number), "0", "2")
        assert seen["HPC_NODE_RANK"] == str(number)
        assert (seen["ROCM_HOME"], seen["CC"], seen["NCCL_NET"]) == ("/opt/rocm-7.1.1", "gcc", "OFI")
        loaded = seen["modules"]
        assert [m for m in loaded if "miniforge" in m] == []
        assert loaded.index("rocm/7.1.1") < loaded.index("rccl-net-plugin/1.0")
    job = user.step(user.status())["job"]
    assert user.twin.sh(f"ls {folder}/logs/look-{job}.o")


def test_a_file_is_broadcast_to_every_node_s_disk(user: User) -> None:
    """Slurm's own sbcast, by the function that job.sh calls for many nodes; a failure ends no job."""
    twin = user.twin
    ours = f"{ROOT}/core/hpctrain/render/job.sh {ROOT}/plugins/hpctrain_plugins/schedulers/slurm_start.sh"
    user.put("spread.sh", SPREAD)
    twin.sh(f"for f in {ours}; do cp $f {user.folder}; done; head -c 3000000 /dev/urandom >{user.folder}/big")
    twin.sh(f"chown -R alice {user.folder}")
    options = f"-A {twin.site.overlay.account} -N2 -t5 --constraint=nvme --wait -o {user.folder}/said"
    done = twin.run("bash", "-lc", f"sbatch {options} spread.sh", user="alice", cwd=user.folder, timeout=120)
    said = twin.sh(f"cat {user.folder}/said")
    assert done.returncode == 0, done.stderr + said
    (whole,) = re.findall(r"^shared (\w+)$", said, re.M)
    assert re.findall(r"^node \S+ (\w+)$", said, re.M) == [whole, whole]
    assert "big was not broadcast; each node reads it from the shared disk" in said
    assert said.endswith("went on\n")


def test_a_module_that_was_renamed_is_named(user: User) -> None:
    facts = user.twin.site.cluster
    assert facts.modules is not None
    run = json.dumps([name.replace("rocm/7.1.1", "rocm/9.9.9") for name in facts.modules.run])
    build = json.dumps(list(facts.modules.build))
    user.put(
        "site.toml",
        f'[modules]\nsource = "olcf-pytorch"\nbuild = {build}\nrun = {run}\n[hardware]\ngpus_per_node = 1\n',
    )
    account = ("--account", user.twin.site.overlay.account)
    env = {**words(user), "HPCTRAIN_SITE": f"{user.folder}/site.toml"}
    done = user.hpctrain("submit", "run.toml", *account, "--wait", timeout=300, env=env)
    assert done.returncode != 0
    assert "hpctrain: module load rocm/9.9.9 failed" in user.log()


def test_the_document_s_proxy_is_the_user_s_choice(user: User) -> None:
    """A node that has it reaches the hub; the plan says who asked."""
    proxy = user.twin.site.cluster.facts["proxy"]
    said = f'\n[env]\nhttps_proxy = "{proxy["https_proxy"]}"\nno_proxy = "{proxy["no_proxy"]}"\n'
    user.put("run.toml", RUN + said)
    account = ("--account", user.twin.site.overlay.account)
    page = user.hpctrain("plan", "run.toml", *account, "--explain", "https_proxy", env=words(user)).stdout
    assert "proxy.ccs.ornl.gov:3128" in page
    assert "run file" in page or "run.toml" in page
