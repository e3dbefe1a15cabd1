"""A stand-in for torch, under its real name: no tensors, but its NCCL is loaded as the real one's is.

`libtorch_cuda.so` needs `libnccl.so.2` and calls what that NCCL brought: with an older one preloaded
its import ends as the real one's does, with `undefined symbol: ncclCommShrink`.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.twin.services import libraries

MODULE = '''\
"""A twin's stand-in for torch: it loads NCCL and counts GPUs."""
import ctypes
from pathlib import Path

from torch import cuda

__version__ = "{version}"


class version:
    cuda, hip = "{cuda}", None


ctypes.CDLL(str(Path(__file__).parent / "lib/libtorch_cuda.so"))


class ones:
    def __init__(self, *shape, device="cpu"):
        self.count = shape[0]

    def sum(self):
        return self

    def item(self):
        return float(self.count)
'''
CUDA = '''\
"""GPUs by their device files."""
import os
from pathlib import Path


def device_count():
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    files = [path.name for path in Path("/dev").glob("nvidia[0-9]*")]
    return len(files if shown is None else [number for number in shown.split(",") if number])


def is_available():
    return device_count() > 0


def get_device_name(number):
    return "a twin's device file"


class nccl:
    @staticmethod
    def version():
        return (2,)
'''
RUN = '''\
"""torchrun: starts the ranks of this node and ends as the worst of them."""
import os
import subprocess
import sys

words, own = sys.argv[1:], {}
while words[0] in ("--nnodes", "--node-rank", "--nproc-per-node", "--master-addr", "--master-port"):
    own[words[0]] = words[1]
    words = words[2:]
each, before = int(own["--nproc-per-node"]), int(own["--node-rank"])
world, ranks = int(own["--nnodes"]) * each, []
for local in range(each):
    told = {"LOCAL_RANK": local, "RANK": before * each + local, "WORLD_SIZE": world}
    env = {**os.environ, **{name: str(value) for name, value in told.items()}}
    ranks.append(subprocess.Popen([sys.executable, *words], env=env))
sys.exit(max(abs(rank.wait()) for rank in ranks))
'''


def files(version: str, cuda: str, nccl: str) -> dict[str, bytes]:
    """The content of its wheel, by path."""
    texts = {
        "torch/__init__.py": MODULE.format(version=version, cuda=cuda),
        "torch/cuda.py": CUDA,
        "torch/distributed/__init__.py": "",
        "torch/distributed/run.py": RUN,
    }
    library = {"torch/lib/libtorch_cuda.so": _library(nccl)}
    return {**{path: text.encode() for path, text in texts.items()}, **library}


def _library(nccl: str) -> bytes:
    """What calls NCCL, bound when it is loaded."""
    called = ["ncclCommSplit", *(["ncclCommShrink"] if libraries.numbers(nccl) >= (2, 27) else [])]
    lines = [*(f"int {name}(void);" for name in called), "int torch_calls(void) { return 0"]
    lines.append("".join(f" + {name}()" for name in called) + "; }")
    with tempfile.TemporaryDirectory() as made:
        own, result = Path(made) / "libnccl.so.2", Path(made) / "libtorch_cuda.so"
        libraries.build("nccl", nccl, own)
        source = Path(made) / "torch.c"
        source.write_text("\n".join((*lines, "")))
        argv = ("gcc", "-shared", "-fPIC", "-Wl,-z,now", "-Wl,-rpath,$ORIGIN/../../nvidia/nccl/lib")
        subprocess.run((*argv, "-o", str(result), str(source), str(own)), check=True, timeout=60)
        return result.read_bytes()
