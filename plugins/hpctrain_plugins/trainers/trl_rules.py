"""Failures seen with transformers, TRL, PEFT and torch: a pattern, its cause and its cure."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="gpu-memory",
        pattern=r"(?:CUDA|HIP) out of memory|torch\.OutOfMemoryError",
        cause="the GPU's memory is full",
        fix="halve per_device_train_batch_size and double gradient_accumulation_steps; "
        "then activation_checkpointing = true; then zero_stage = 3",
        sure="certain",
    ),
    Rule(
        name="hub-offline",
        pattern=r"OfflineModeIsEnabled|couldn't connect to .*huggingface|LocalEntryNotFoundError",
        cause="something is loaded by its hub name where there is no network",
        fix="declare it in [assets] and name the asset in [train.trl]",
        sure="certain",
    ),
    Rule(
        name="tokenizer-generation",
        pattern=r"Tokenizer class TokenizersBackend does not exist|'list' object has no attribute 'keys'",
        cause="the tokenizer was saved by transformers 5 and is read by transformers 4",
        fix='packages = ["transformers>=5"], or save it again with hpctrain\'s trainer',
    ),
    Rule(
        name="compiler-missing",
        pattern=r"Error building extension|No such file .*'(?:c\+\+|g\+\+|ninja)'|CUDA_HOME does not exist",
        cause="DeepSpeed compiles at its first start and finds no compiler on this node",
        fix="load the site's compiler module, or zero_stage = 0",
    ),
    Rule(
        name="diverged",
        pattern=r"error\[diverged\]",
        cause="the loss became NaN",
        fix="a smaller learning_rate, longer warm-up, or max_grad_norm = 1.0",
        sure="certain",
    ),
    Rule(
        name="cpu-torch",
        pattern=r"Torch not compiled with CUDA enabled|CUDA was not found",
        cause="torch in this environment was built without GPUs",
        fix="build the environment on the place with the GPU, or take torch from the vendor's index",
    ),
)
