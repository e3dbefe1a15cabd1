"""The Frontier document from nothing, by its own steps, as an ordinary user; no node has a route out."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.twin import adapted
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services import packages
from tests.twin.services.inside import ready, shadow
from tests.twin.site_file import ROOT
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = Path(__file__).parents[1] / "e2e/walks"
DOCUMENT = ROOT / "hpc_frontier/hpc_frontier/examples/tutorial.toml"
TORCH = "/opt/twin/torch"
RUNS = "/lustre/orion/abc123/scratch/alice/hpctrain/runs"
SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"
SETUP = """\
from setuptools import setup, Extension

setup(ext_modules=[Extension("deepspeed._C", ["deepspeed/kernel.c"])])
"""


def laid_out(frontier: Twin, tmp_path: Path) -> None:
    """The hub's snapshots, and what the twin's index has no room for: a C extension in DeepSpeed's name,
    and torch, which is a line that leads to the environment that every twin has."""
    made = frontier.run(f"{TORCH}/bin/python", str(WALKS / "llama/hub.py"), "/srv/hub", timeout=120)
    assert made.returncode == 0, made.stderr
    packages.extension(tmp_path, "deepspeed", "0.17.5", SETUP, "class DeepSpeedEngine: ...\n")
    site = f"{TORCH}/lib/python{SHORT}/site-packages\n".encode()
    packages.archive(tmp_path, "torch-of-the-twin", "1.0", {"torch_of_the_twin.pth": site})
    for path in tmp_path.iterdir():
        said = shlex.quote(path.read_bytes().hex())
        line = f"bytes.fromhex('{said}')"
        frontier.run("python3", "-c", f"open('/srv/index/{path.name}', 'wb').write({line})")


def test_the_document_s_steps_end_with_a_merged_model(twin: Start, torch: None, tmp_path: Path) -> None:
    frontier = ready(twin("frontier"))
    shadow(frontier)
    laid_out(frontier, tmp_path)
    user = User(frontier, folder="walk")
    user.put("tutorial.toml", adapted.frontier(DOCUMENT.read_text()))
    user.put("walk.sh", (WALKS / "frontier.sh").read_text())
    user.put("settings.toml", f'[run.resources]\naccount = "{frontier.site.overlay.account}"\n')
    env = {
        "HPCTRAIN_SETTINGS": f"{user.folder}/settings.toml",
        "HPCTRAIN_SITE": str(EXAMPLE / "site.toml"),
        "HF_TOKEN": "hf_read",
    }
    done = frontier.run("bash", "-l", "walk.sh", user="alice", cwd=user.folder, timeout=500, env=env)
    logs = frontier.run("bash", "-c", f"tail -n 20 {RUNS}/*/*/logs/*").stdout
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr + logs
    steps = re.findall(r"^== (\d[\d.]*) ", done.stdout, re.MULTILINE)
    assert steps == ["0", "1", "1.1", "2", "4", "5", "6", "7"]
    files = {name: sha256 for sha256, name in re.findall(r"(?m)^([0-9a-f]{64})  (/\S+)$", done.stdout)}
    above = re.compile(r".*/(checkpoints/finetune_llama3_ds/1-[\w-]+|env/wheel-deepspeed-\w+)/")
    shown = {above.sub("", name) for name in files}
    assert {"checkpoint-50/adapter_model.safetensors", "checkpoint-63/adapter_model.safetensors"} <= shown
    assert "hf/checkpoint-63/model.safetensors" in shown
    assert any(re.fullmatch(r"deepspeed-0\.17\.5-cp\d+-cp\d+-linux_x86_64\.whl", name) for name in shown)
    assert len(set(files.values())) == len(files)
    for folder in ("llama-models-cache", "llama-tokenizers-cache", "data_cache"):
        assert f"/hpctrain/assets/{folder}/" in done.stdout
    assert "/guanaco-llama2-1k-train.arrow" in done.stdout
    assert ".pth" not in done.stdout
    log = frontier.sh(f"cat {RUNS}/finetune_llama3_ds/1-*/logs/train.rank0.log")
    assert "2 ranks; rank 0 on cpu" in log
    assert "step 50/63" in log
    names = done.stdout.partition("== 7 ")[2].split()
    assert {"PATH", "ROCM_HOME", "CC", "HF_HUB_OFFLINE", "NCCL_NET", "FI_MR_CACHE_MONITOR"} <= set(names)
    assert "MIOPEN_USER_DB_PATH" in names
    assert "no ~/.deepspeed_env" in done.stdout
    scripts = frontier.sh(f"cat {RUNS}/*/*/steps/*/*.sh {RUNS}/*/*/steps/train/deepspeed.env")
    assert "hf_read" not in done.stdout + done.stderr + scripts
