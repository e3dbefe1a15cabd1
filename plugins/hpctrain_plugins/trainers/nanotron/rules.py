"""Failures of nanotron: a pattern, its cause and its cure."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="nanotron-local-rank",
        pattern=r"AssertionError: Local rank mismatch",
        cause="since 84eabd66 nanotron takes all ranks for local ones where they are 8 or fewer",
        fix="one node, more than 8 GPUs, or an older revision in [code]",
        sure="certain",
    ),
    Rule(
        name="nanotron-world",
        pattern=r"TP\*CP\*DP\*PP=\S+ != WORLD_SIZE=\d+",
        cause="the sizes under parallelism do not multiply to the number of GPUs",
        fix="parallelism.dp = GPUs / (tp x pp x context_parallel_size)",
        sure="certain",
    ),
    Rule(
        name="nanotron-fresh-start",
        pattern=r"No previous checkpoint found in",
        cause="resume_checkpoint_path has neither latest.txt nor model_config.json, so training starts at 0",
        fix="right for a first attempt; else name the folder that holds latest.txt",
    ),
    Rule(
        name="nanotron-data-short",
        pattern=r"Dataset is too small for steps",
        cause="train_steps x batch x sequence_length is more than the dataset's tokens",
        fix="fewer tokens.train_steps, or more data",
        sure="certain",
    ),
    Rule(
        name="nanotron-strict-key",
        pattern=r"dacite\.exceptions\.(?:UnexpectedDataError|WrongTypeError|MissingValueError|UnionMatchError)",
        cause="the configuration does not fit this revision of nanotron, which loads it strictly",
        fix="hpctrain check --trainer nanotron FILE names the key; newer keys need a newer revision",
    ),
    Rule(
        name="nanotron-no-gpu",
        pattern=r"CUDA was not found: torch\.cuda\.is_available\(\): False",
        cause="nanotron trains on CUDA only, and this node or this torch has none",
        fix="build the environment on a node with a GPU, and train there",
        sure="certain",
    ),
)
