"""Stand-in for torchrun: one process on each node, with the variables that it would have."""

import os
import runpy
import sys

words = sys.argv[1:]
script = next(number for number, word in enumerate(words) if word.endswith(".py"))
own = dict(zip(words[:script:2], words[1:script:2], strict=True))
os.environ["RANK"] = os.environ["LOCAL_RANK"] = own["--node-rank"]
os.environ["WORLD_SIZE"] = own["--nnodes"]
sys.argv = words[script:]
runpy.run_path(words[script], run_name="__main__")
