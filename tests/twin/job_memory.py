"""How much memory a job on a twin gets where it asks for none: what the parts of a rank take here.

A site gives a core `memory_gb / cores_per_node` of its facts, or less where its default is small. A twin is
never kinder than that, and poorer wherever it can be, so that a run which must ask for memory is seen to ask.
But it is never so poor that a rank with torch does not fit, and how much that is differs between processors:
a rank with torch 2.13 took 490 MB on one and 770 on another.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import subprocess
from pathlib import Path

from hpctrain.model.cluster import Cluster
from tests.patience import PATIENCE
from tests.twin.rootfs import CACHE

POOREST = 100
"""MB for a core: less than any of our sites gives."""
MARGIN = 1.5
"""What a rank takes beyond the step that is measured. The example's takes 5 % more (490 MB after
466: data, tokenizer, checkpoint); the rest is for larger runs than the example, as the walks have them."""
SECONDS = 300
STEP = """
import resource, sys
import torch
import torch.distributed as ranks
from transformers import AutoConfig, AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
ranks.init_process_group("gloo", store=ranks.HashStore(), rank=0, world_size=1)
sizes = dict(vocab_size=384, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
config = AutoConfig.for_model("qwen3", num_key_value_heads=2, head_dim=16, intermediate_size=128, **sizes)
model = AutoModelForCausalLM.from_config(config)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    words = torch.randint(0, 384, (8, 96))
    model(input_ids=words, labels=words).loss.backward()
    optimizer.step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


class Unmeasured(Exception):
    """The step did not run; the message is its own."""


def memory_per_core(cluster: Cluster, step_mb: int) -> int:
    """MB of a core where a job asks for no memory, so that a rank on its cores holds the measured step.

    `step_mb` 0: nothing was measured, so no rank with torch runs.
    """
    cores = max(1, cluster.launch.cpus_per_gpu)
    fits = math.ceil(step_mb * MARGIN / cores)
    hardware = cluster.hardware
    site = int(hardware.memory_gb * 1024) // hardware.cores_per_node or fits
    return min(site, max(POOREST, fits))


def step_mb(python: str) -> int:
    """The most that a process of this interpreter holds in a training step, in MB; 0 without an interpreter.

    Measured once for the interpreter, its packages and the processor, and kept beside the root file system.
    """
    if not python:
        return 0
    path = CACHE / f"step-{_key(python)}.json"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "step.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            new = path.with_suffix(".new")
            new.write_text(json.dumps({"python": python, "mb": _measured(python)}))
            new.rename(path)
    return int(json.loads(path.read_text())["mb"])


def _key(python: str) -> str:
    packages = sorted(Path(python).parents[1].glob("lib/python3*/site-packages"))
    changed = [(str(folder), folder.stat().st_mtime_ns) for folder in packages]
    cpu = {
        line
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith(("model name", "flags"))
    }
    text = f"{os.path.realpath(python)} {changed} {sorted(cpu)} {STEP}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _measured(python: str) -> int:
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        (python, "-c", STEP), capture_output=True, text=True, env=environ, timeout=SECONDS * PATIENCE
    )
    if done.returncode:
        raise Unmeasured(f"a training step with {python} failed: {done.stderr.strip()[-1500:]}")
    return int(done.stdout.split()[-1])
