"""Failures of GPT-NeoX and DeepSpeed below it: a pattern, its cause and its cure."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="neox-no-gpu",
        pattern=r"Train batch size: 0 has to be greater than 0|Megatron requires CUDA\.",
        cause="NeoX found no GPU here, and reads that as a batch of 0",
        fix="start it in the job, not on a login node; hpctrain check --trainer neox --gpus N needs none",
        sure="certain",
    ),
    Rule(
        name="neox-batch",
        pattern=r"Check batch related parameters|has to be greater than 0",
        cause="train_batch_size is not micro batch x accumulation x model copies",
        fix="leave out train_batch_size: NeoX computes it from the two others",
        sure="certain",
    ),
    Rule(
        name="neox-fresh-start",
        pattern=r"Unable to load checkpoint\.",
        cause="`load` holds no `latest`, so NeoX starts at iteration 0 without an error",
        fix="right for a first attempt; else name the folder that holds `latest`, or `iteration`",
    ),
    Rule(
        name="neox-number-as-text",
        pattern=r"type object 'float' has no attribute '__origin__'"
        r"|'<=' not supported between instances of 'str' and 'float'",
        cause="a number of the configuration is text: YAML 1.1 reads 6e-5 so",
        fix="write 6.0e-5; hpctrain check --trainer neox FILE.yml names the line",
    ),
    Rule(
        name="neox-pkg-resources",
        pattern=r"No module named 'pkg_resources'|cannot import name 'packaging' from 'pkg_resources'",
        cause="NeoX takes packaging from pkg_resources: setuptools 82 has none, setuptools 70 not that name",
        fix='packages = ["setuptools>=75.8,<82"]',
        sure="certain",
    ),
    Rule(
        name="nccl-symbol",
        pattern=r"undefined symbol: nccl\w+",
        cause="an older libnccl.so.2 was found before the one that torch was built for",
        fix="load no NCCL module of the site, or put the environment's own libnccl in front",
        sure="certain",
    ),
    Rule(
        name="neox-kernel-arch",
        pattern=r"invalid literal for int\(\) with base 10: '90a'",
        cause="GH200 reports its architecture as 90a, which torch's extension builder cannot read",
        fix='[env]\nTORCH_CUDA_ARCH_LIST = "9.0"',
        sure="certain",
    ),
    Rule(
        name="neox-diverged",
        pattern=r"number of nan iterations:\s+[1-9]",
        cause="the loss was no number in some iterations",
        fix="a smaller rate, longer warmup, or gradient_clipping: 1.0",
    ),
)
