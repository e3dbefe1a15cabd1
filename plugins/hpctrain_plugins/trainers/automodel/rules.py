"""Failures of NeMo Automodel: a pattern, its cause and its cure."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="automodel-checkpoint-taken",
        pattern=r"Checkpoint directory .* already exists|FileExistsError: .*epoch_\d+_step_\d+",
        cause="another run writes to the same checkpoint_dir",
        fix="leave checkpoint_dir out: each run gets a folder of its own",
        sure="certain",
    ),
    Rule(
        name="automodel-batch",
        pattern=r"global_batch_size \(\d+\) must be divisible by local_batch_size \* dp_size",
        cause="global_batch_size is not a multiple of local_batch_size x model copies",
        fix="hpctrain check --trainer automodel --gpus N FILE.yaml says which number fits",
        sure="certain",
    ),
    Rule(
        name="automodel-recipe",
        pattern=r"YAML config must specify a recipe target",
        cause="the file was written for 0.3, and newer versions need recipe:",
        fix="hpctrain's trainer adds it; or pin nemo-automodel==0.3.*",
        sure="certain",
    ),
    Rule(
        name="automodel-triton",
        pattern=r"key contains names that are not kernel arguments",
        cause="triton is newer than the one torch was built with",
        fix='packages = ["triton==3.7.1"] for torch 2.13',
        sure="certain",
    ),
    Rule(
        name="mamba-missing",
        pattern=r"packages that were not found in your environment: mamba_ssm"
        r"|No module named '(?:mamba_ssm|causal_conv1d)'",
        cause="mamba_ssm or causal_conv1d was not compiled into this environment",
        fix='[environment]\ncompile = ["causal-conv1d==1.5.3", "mamba-ssm==2.2.5"]',
        sure="certain",
    ),
    Rule(
        name="mamba-abi",
        pattern=r"(?:selective_scan_cuda|causal_conv1d_cuda)\S*: undefined symbol",
        cause="a compiled extension was built against another torch",
        fix="build it again in this environment, without build isolation",
        sure="certain",
    ),
    Rule(
        name="automodel-no-gpu",
        pattern=r"_cuda_resetPeakMemoryStats|Torch not compiled with CUDA enabled",
        cause="Automodel trains on CUDA only, and this torch has none",
        fix="build the environment on a node with a GPU",
        sure="certain",
    ),
)
