"""A stranger's environment on a stranger's cluster: two nodes train inside an image, with their token."""

from __future__ import annotations

import json

import pytest

from tests.twin.fixtures import Start
from tests.twin.services.inside import python_image, ready
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

IMAGE = "nvcr.io/nvidia/pytorch:25.06-py3"
ENVIRONMENT = f"""
[environment]
use = "podman_hpc"

[environment.podman_hpc]
image = "{IMAGE}"
"""
TOKEN = "hf_c4nary-of-the-image"


@pytest.fixture(scope="module")
def user(twin: Start) -> User:
    """Alice on Perlmutter, where the registry has the image."""
    perlmutter = ready(twin("perlmutter"))
    python_image(perlmutter, IMAGE)
    user = User(perlmutter, folder="podman")
    text = (EXAMPLE / "edf.toml").read_text()
    old = text[text.index("[environment]") : text.index("[train]")]
    user.put("run.toml", 'secrets = ["huggingface"]\n' + text.replace(old, ENVIRONMENT.lstrip() + "\n"))
    return user


def test_ranks_of_two_nodes_run_inside_the_image(user: User) -> None:
    done = user.hpctrain(
        *("submit", "run.toml", "--on", "perlmutter", "--account", user.twin.site.overlay.account),
        env={"HF_TOKEN": TOKEN},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    path = user.until("done", seconds=240)["path"]
    logs = user.twin.sh(f"cat {path}/logs/train.rank*.log")
    ranks = [json.loads(line) for line in logs.splitlines() if line.startswith("[")]
    assert len(ranks) >= 2
    nodes = set()
    for prefix, sees_checkpoints, environ in ranks:
        assert (prefix, sees_checkpoints) == ("/usr", True)
        assert environ["HF_TOKEN"] == TOKEN
        assert environ["AWKWARD"] == "a b, 'c' \"d\" $HOME `id` \\ é"
        assert environ["HOME"] == "/root"  # the image's own: the environment is clean
        assert not [name for name in environ if name.startswith("SLURM_")]
        nodes.add(environ["HPC_NODE_RANK"])
    assert nodes == {"0", "1"}
