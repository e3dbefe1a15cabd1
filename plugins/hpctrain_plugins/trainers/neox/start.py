"""What every rank of a NeoX run executes: NeoX's own launcher without its way to other nodes.

`deepy.py` reads the files, then starts DeepSpeed's launcher, which reaches the nodes by ssh or by a
scheduler of its own choice. The ranks already run here, so each makes the same arguments and goes on
with `train.py` itself: signals reach it and its exit code comes back. It compiles nothing: `compiled.py` did.
"""

from __future__ import annotations

FILE = "neox_rank.py"
SOURCE = '''\
"""One rank of GPT-NeoX: the arguments that deepy.py would pass, then train.py."""

import glob
import os
import runpy
import sys

sys.path.insert(0, os.getcwd())

from megatron import fused_kernels  # noqa: E402
from megatron.data import data_utils  # noqa: E402
from megatron.neox_arguments import NeoXArgs  # noqa: E402


def compiled(*_):
    """What NeoX would compile now is here: the step neox-compile made it, once and in peace."""


fused_kernels.load = data_utils.compile_helper = compiled
sys.path.insert(0, os.path.join(os.path.dirname(fused_kernels.__file__), "build"))

PROGRAM = "train.py"
given = {"global_num_gpus": int(os.environ["WORLD_SIZE"]), "user_script": PROGRAM}
asked = NeoXArgs.from_ymls([sys.argv[1]], overwrite_values=given)
load = getattr(asked, "load", None)
whole = sorted(glob.glob(f"{load}/global_step*/configs/{os.path.basename(sys.argv[1])}"))
if load and whole and getattr(asked, "iteration", None) is None and not os.path.exists(f"{load}/latest"):
    newest = max((row.split("/")[-3] for row in whole), key=lambda name: int(name[len("global_step") :]))
    sys.exit(
        f"hpctrain: {load} holds {newest} and no file `latest`: NeoX would start again at 0 silently\\n"
        f"  to go on from there: printf {newest} >{load}/latest"
    )
arguments = asked.get_deepspeed_main_args()
sys.argv = arguments[arguments.index(PROGRAM) :]
runpy.run_path(PROGRAM, run_name="__main__")
'''
