"""What a trainer answers: its command, and as data how to read its progress and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import frozen

from hpctrain.model.layer import Layer
from hpctrain.model.step import Ranks, Step
from hpctrain.model.words import Word

Configs = Mapping[str, Mapping[str, Any]]
"""An asset of the run -> what its model's `config.json` says."""


@frozen(kw_only=True)
class Pattern:
    """One regular expression over a block of log, with named groups that are metrics columns.

    A group's text is a number, behind which K, M, B, T, P or E may stand for thousands. `scale` multiplies
    a group ("tokens": 1e3); a hook per line would cost nine times as much.
    """

    regex: str
    """Groups are columns: (?P<step>\\d+), (?P<loss>…)."""
    scale: Mapping[str, float] = attrs.field(factory=dict)
    """Factors of groups, by name."""


@frozen(kw_only=True)
class Layout:
    """How a trainer names its checkpoints: `name` is a regular expression with a group `step`,
    `complete` the file that is written last."""

    format: str
    """The checkpoint format's name, for `[checkpoint] export`: hf, neox."""
    folder: str = ""
    """Below the run's checkpoints."""
    name: str = r"checkpoint-(?P<step>\d+)"
    """Matches the name of a checkpoint; its group `step` is a number."""
    complete: str = ""
    """A checkpoint without this file is not whole."""
    pointer: str = ""
    """The file beside the checkpoints that holds the name of the one to go on from; empty: the trainer looks
    for the newest itself."""
    manifests: bool = False
    """Whether the trainer writes a manifest into each (`hpctrain_job.resume`) and drops old ones by
    `[checkpoint] keep`; else the job does both."""
    keeps: int = 0
    """How many it keeps where the run file does not say; 0: nobody knows."""


@frozen(kw_only=True)
class Numbers:
    """What the plan says about size and time; None where it is not known, with the reason left out."""

    parameters: int | None = None
    """Weights of the model."""
    trained: int | None = None
    """Those that are trained (of an adapter)."""
    active: int | None = None
    """Those that one token is multiplied with: fewer than all in a mixture of experts."""
    vocabulary: int | None = None
    """Words of the tokenizer."""
    vocabulary_padded: int | None = None
    """Rows of the embeddings as they are trained."""
    rows_per_step: int | None = None
    """Of all ranks together: `[train] global_batch_size`, where the run file says it."""
    tokens_per_step: int | None = None
    """Of all ranks together."""
    steps: int | None = None
    """Steps in all."""
    flops_per_token: float | None = None
    """The basis of MFU, with the attention scores in full."""
    flops_causal: float | None = None
    """The same with half of the attention scores, which is all that a causal mask needs."""
    hardware: float = 1.0
    """FLOPs that the hardware does for each that counts: HFU over MFU, where activations are recomputed."""
    memory_gb: float | None = None
    """Of the fullest GPU: weights, gradients and moments."""
    activations_gb: float | None = None
    """What a step's tokens take beside them when the backward pass begins."""
    loading_gb: float | None = None
    """Memory of a node while its ranks load the model, before it is on the GPUs."""
    saving_gb: float | None = None
    """Memory of the fullest node that the saving of a checkpoint takes for itself."""
    checkpoint_gb: float | None = None
    """One checkpoint on the disk."""
    leaves_out: tuple[str, ...] = ()
    """What is not counted, in words."""


@frozen(kw_only=True)
class Train:
    """The trainer's command for every rank, run inside the environment."""

    argv: tuple[Word, ...]
    """The last line of the training step's task.sh, in every rank."""
    layer: Layer = attrs.field(factory=Layer)
    """What training needs around it: variables, lines, files."""
    ranks: Ranks = Ranks.PER_GPU
    """PER_GPU, or PER_NODE for a program that starts its own, or ONCE."""
    checkpoints: Layout | None = None
    """How to find the newest whole checkpoint; None: it writes none."""
    start: Word = ""
    """Where the first attempt starts; empty: with nothing, or where the trainer's own model is."""
    progress: tuple[Pattern, ...] = ()
    """How to read its log; () when it writes metrics.jsonl itself."""
    code: tuple[str, ...] = ()
    """Importable packages that travel to the job in code/job.zip."""
    numbers: Numbers = attrs.field(factory=Numbers)
    """What `plan` shows of size and time."""
    before: tuple[Step, ...] = ()
    """Steps of the trainer's own that must end well before training: its validator, a build. One that is
    `inside` waits for all that is prepared, another only for the data that is brought without a job."""
    code_from: Word | None = None
    """What the run's own copy of the code is made of: a build of it; None: what `assets[".code"]` is."""
    source: str = ""
    """Stamped by core: who answered."""
