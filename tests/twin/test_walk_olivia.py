"""The document's own steps on Olivia's twin, from nothing, as an ordinary user."""

from __future__ import annotations

import re

import pytest

from tests.twin import rootfs
from tests.twin.fixtures import Start
from tests.twin.services.githost import TOKEN
from tests.twin.services.inside import python_image, ready, repository
from tests.twin.site_file import ROOT

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = ROOT / "tests/e2e/walks"


def test_the_walk_ends_with_named_artifacts(twin: Start) -> None:
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    olivia = ready(twin("olivia"))
    python_image(olivia, "nvcr.io/nvidia/pytorch:25.06-py3")
    trainer = {"train.py": (WALKS / "train.py").read_text()}
    repository(olivia, "NationalLibraryOfNorway/nb-gpt-posttrain", trainer, private=True)
    done = olivia.run("bash", str(WALKS / "olivia.sh"), TOKEN, user="alice", timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    steps = re.findall(r"^== (\d+)\.", done.stdout, re.MULTILINE)
    assert {int(n) for n in steps} == set(range(1, 13))
    last = done.stdout.rpartition("== 12.")[2]
    sums = dict(line.split()[::-1] for line in last.splitlines() if re.match(r"[0-9a-f]{64} ", line))
    overlays = [name for name in sums if re.fullmatch(r"overlays/myenv_[0-9a-f]{12}_amd64\.sqsh", name)]
    assert len(overlays) >= 2
    assert [
        name for name in sums if re.fullmatch(r"containers/pytorch-25\.06-py3_[0-9a-f]{12}_amd64\.sif", name)
    ]
    models = {digest for name, digest in sums.items() if name.endswith("/model.json")}
    assert len(models) == 1
    assert '"VIRTUAL_ENV": "/user-software"' in done.stdout
    logs = done.stdout.rpartition("== 11.")[2].rpartition("== 12.")[0]
    assert "learned" in logs.splitlines()[-2]
    assert '"HF_TOKEN": "7 characters", "HUGGING_FACE_HUB_TOKEN": "7 characters"' in done.stdout
    for secret in ("hf_walk", TOKEN):
        assert secret not in done.stdout + done.stderr
        assert not olivia.sh(f"grep -rl {secret} /cluster/work/projects /cluster/projects || true")
