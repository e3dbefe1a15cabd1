"""Stand-in for NeoX's train.py: loads torch and its NCCL, prints NeoX's lines, writes a real checkpoint."""

import os
import re
import shutil
import sys
from pathlib import Path

import flash_attn
import torch
from megatron.data.data_utils import compile_helper


def said(key: str) -> str:
    """One scalar of the file."""
    found = re.search(rf'"?{key}"?: "?([^",\n]*)', Path(sys.argv[1]).read_text())
    return found[1] if found else ""


def preloaded(process: str) -> str:
    """LD_PRELOAD of a process of ours."""
    words = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return next((word.partition("=")[2] for word in words if word.startswith("LD_PRELOAD=")), "none")


def starters() -> list[str]:
    """What the starters on this node preload."""
    found = [path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if path.read_text() == "srun\n"]
    return sorted({preloaded(process) for process in found})


def main() -> None:
    """What one rank does."""
    compile_helper()
    from megatron.data import helpers

    rank = int(os.environ["RANK"])
    assert flash_attn.total([1.5, 2.5]) == 4.0
    assert Path(f"{said('data_path')}.bin").exists(), said("data_path")
    if rank == 0:
        print(f"torch {torch.__version__}; task preloads {preloaded('self')}; srun preloads {starters()}")
        loaded = sorted(set(re.findall(r"/\S*libnccl\.so\S*", Path("/proc/self/maps").read_text())))
        print(f"helpers {helpers.__file__}")
        print(f"nccl in memory: {' '.join(loaded)}")
        for step in range(1, 6):
            print(
                f"samples/sec: 1.0 | iteration {step:8d}/{5:8d} | elapsed time per iteration (ms): 9.0"
                " | learning rate: 3.000E-04 | approx flops per GPU: 290.0TFLOPS"
                f" | lm_loss: {10 / step:.6E} |"
            )
        folder = Path(said("save"))
        shutil.copytree(os.environ["WALK_START"], folder, dirs_exist_ok=True)
        (step_folder,) = folder.glob("global_step*")
        # The shape is that of the small model it goes on from, not the one in the run's file.
        shutil.copy(step_folder / "configs/model.yml", step_folder / "configs/neox.yml")


if __name__ == "__main__":
    main()
