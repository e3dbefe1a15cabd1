"""What a conversion may be told, and what it tells afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

DTYPES = {"fp32": "F32", "fp16": "F16", "bf16": "BF16", "keep": "keep"}
NAMINGS = ("legacy", "new", "te")
LAYOUTS = ("pipelined", "sequential")
LAYER_KEYS = STACKED, NUMBERED, SINGLETON = ("stacked", "numbered", "singleton")
"""Megatron's forms of keys: all layers in one tensor, one for each, or gate, up and experts apart too."""
GQA_LAYOUTS = ("concat", "per-head")
SHARD_BYTES = 5_000_000_000
VERIFY = ("none", "roundtrip", "logits")
"""`logits` reads back as `roundtrip` does, and computes with both."""


def _one_of(words: Any) -> Any:
    return attrs.validators.in_(tuple(words))


@attrs.frozen(kw_only=True)
class ConvertOptions:
    """The choices that a checkpoint itself cannot make; the defaults keep what is there."""

    source_format: str = "auto"
    dtype: str = attrs.field(default="keep", validator=_one_of(DTYPES))
    verify: str = attrs.field(default="none", validator=_one_of(VERIFY))
    tp: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    pp: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    iteration: int | None = None
    tag: str = ""
    """The step folder to read when it is not the one that `latest` names."""
    base: Path | None = None
    """The model an adapter was trained on, when the adapter's own word does not lead there."""
    config: Path | None = None
    """A configuration file or folder, when the checkpoint holds none."""
    tokenizer: Path | None = None
    naming: str = attrs.field(default="new", validator=_one_of(NAMINGS))
    layout: str = attrs.field(default="pipelined", validator=_one_of(LAYOUTS))
    layer_keys: str = attrs.field(default=STACKED, validator=_one_of(LAYER_KEYS))
    neox_gqa_layout: str = attrs.field(default="", validator=_one_of(("", *GQA_LAYOUTS)))
    rope_interleaved: bool | None = None
    ranks: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Rewrite a checkpoint of ZeRO, with its optimizer, for so many ranks."""
    optimizer: bool = False
    """Read all that the optimizer holds, to write it too; set where the format is one of optimizers."""
    masters: bool = False
    """Read the optimizer's fp32 weights instead of the rounded ones."""
    shard_bytes: int = SHARD_BYTES
    threads: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1))
    )
    fsync: bool = True
    dry_run: bool = False

    def workers(self, *, cached: bool = False) -> int:
        """Threads, as said; or two, and one for bytes that only move from page `cached` to page cached.

        Memory is what they wait for there: a second one costs a tenth to a fifth more CPU.
        """
        return self.threads or (1 if cached else 2)

    @property
    def target_dtype(self) -> str:
        """The type in the words of safetensors, or `keep`."""
        return DTYPES[self.dtype]


@attrs.frozen(kw_only=True)
class Report:
    """What a conversion did; the same facts stand in `conversion.json`."""

    source: Path
    source_format: str
    target_format: str
    out: Path
    tensors: int
    parameters: int
    """Weights of the model, each counted once."""
    bytes_written: int
    bytes_checked: int = 0
    """Of the source, as far as it or a record beside it brings checksums."""
    bytes_compared: int = 0
    """Of what was written, read again."""
    seconds: float = 0.0
    exactness: str
    """`exact`, `rounded` to the named type, or `arithmetic`: the weakest class of any tensor."""
    verified: str = "none"
    shapes: str = "unproven"
    """What says every tensor's shape, so that none is lost or cut: `configuration`, for optimizers
    `checkpoint`; else `unproven`."""
    logits: dict[str, Any] = attrs.field(factory=dict)
    """Whose flows computed them, how far they differ and how far they might."""
    decisions: dict[str, Any]
    ignored: dict[str, str]
    mapping: tuple[dict[str, Any], ...] = ()
    """One row per tensor written: file, name, type, shape, exactness, how, from what, checksum."""
    warnings: tuple[str, ...] = ()
    """What was done and may not be what was wanted."""
    swept: tuple[str, ...] = ()
    """Folders that killed conversions to the same place left, and what became of each."""

    def to_json(self) -> dict[str, Any]:
        """The report in the types of JSON."""
        fields = attrs.asdict(attrs.evolve(self, mapping=()), value_serializer=_plain)
        return {**fields, "mapping": list(self.mapping)}  # plain already


def _plain(_instance: Any, _field: Any, value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
