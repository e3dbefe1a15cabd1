"""What nanotron calls the tensors of a Llama, and how its shards say where they belong."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from hpctrain.plugin import IntegrityError

EMBEDDING = "model.token_position_embeddings.pp_block.token_embedding.weight"
NORM = "model.final_layer_norm.pp_block.weight"
HEAD = "model.lm_head.pp_block.weight"

OUTER = {EMBEDDING: "model.embed_tokens.weight", NORM: "model.norm.weight", HEAD: "lm_head.weight"}

LAYER = {
    "input_layernorm.weight": "input_layernorm.weight",
    "post_attention_layernorm.weight": "post_attention_layernorm.weight",
    "attn.o_proj.weight": "self_attn.o_proj.weight",
    "mlp.down_proj.weight": "mlp.down_proj.weight",
}
"""Tensors that are the same in both; the fused ones are handled apart."""

_FILE = re.compile(
    r"model_(?P<leaf>[^.]+?)"
    r"(?:_pp-rank-(?P<pp>\d+)-of-(?P<pps>\d+)_tp-rank-(?P<tp>\d+)-of-(?P<tps>\d+)(?P<exp>_exp-.+)?)?"
    r"\.safetensors$"
)


@attrs.frozen
class ShardName:
    """What a file name says: the last word of the tensor, and its rank when it is sharded."""

    leaf: str
    rank: int | None
    ranks: int
    expert: bool


def parse_file(name: str) -> ShardName | None:
    """The parts of a file name, or None for a file of another kind."""
    match = _FILE.match(name)
    if not match:
        return None
    rank = int(match["tp"]) if match["tp"] is not None else None
    return ShardName(match["leaf"], rank, int(match["tps"] or 1), match["exp"] is not None)


def file_name(tensor: str, pp: int, pps: int, tp: int, tps: int) -> str:
    """The path of a sharded tensor's file."""
    return _path(tensor, f"_pp-rank-{pp}-of-{pps}_tp-rank-{tp}-of-{tps}")


def plain_file_name(tensor: str) -> str:
    """The path of a replicated tensor's file."""
    return _path(tensor, "")


def _path(tensor: str, suffix: str) -> str:
    *folders, leaf = tensor.split(".")
    return "/".join(["model", *folders, f"model_{leaf}{suffix}.safetensors"])


@attrs.frozen
class Piece:
    """A range of the shard that lies at a range of the whole tensor, along one axis."""

    axis: int
    local: tuple[int, int]
    whole: tuple[int, int]


def parse_shape(text: str, name: str) -> tuple[int, ...]:
    """`(a, b)`, whose numbers may be written as numpy writes them."""
    plain = re.sub(r"np\.\w+\((\d+)\)", r"\1", text)
    if not re.fullmatch(r"\(\s*\d+(,\s*\d+)*,?\s*\)", plain):
        raise IntegrityError.of("checkpoint-shape", f"{name} has the unreadable shape {text}", where=name)
    return tuple(int(n) for n in re.findall(r"\d+", plain))


def parse_pieces(text: str, name: str, local: Sequence[int], whole: Sequence[int]) -> list[Piece]:
    """The pairs of slices that a shard carries; each moves along one axis only."""
    try:
        return [_piece(pair, local, whole) for pair in text.split(";")]
    except (ValueError, IndexError) as error:
        message = f"{name} has slices that cannot be followed: {text}"
        raise IntegrityError.of("checkpoint-shape", message, where=name) from error


def _piece(pair: str, local: Sequence[int], whole: Sequence[int]) -> Piece:
    local_spans, theirs = ([_span(s) for s in side.split("|")] for side in pair.split("#"))
    if not len(local_spans) == len(theirs) == len(local) == len(whole):
        raise ValueError("dimensions")
    full = [_bounds(s, n) for s, n in zip(theirs, whole, strict=True)]
    part = [_bounds(s, n) for s, n in zip(local_spans, local, strict=True)]
    moved = [i for i, (b, n) in enumerate(zip(full, whole, strict=True)) if b != (0, n)]
    inner = [i for i, (b, n) in enumerate(zip(part, local, strict=True)) if b != (0, n)]
    axes = sorted({*moved, *inner})
    if len(axes) > 1:
        raise ValueError("more than one axis")
    axis = axes[0] if axes else 0
    if any(b[1] - b[0] != p[1] - p[0] for b, p in zip(full, part, strict=True)):
        raise ValueError("lengths")
    return Piece(axis, part[axis], full[axis])


def _span(text: str) -> tuple[int | None, int | None]:
    start, stop, step = (
        None if t == "None" else int(re.sub(r"np\.\w+\((\d+)\)", r"\1", t)) for t in text.split(",")
    )
    if step not in (None, 1):
        raise ValueError("steps")
    return start, stop


def _bounds(span: tuple[int | None, int | None], length: int) -> tuple[int, int]:
    start, stop = span[0] or 0, length if span[1] is None else span[1]
    if not 0 <= start <= stop <= length:
        raise ValueError("out of range")
    return start, stop


def slices_text(dims: int, pieces: Sequence[Piece]) -> str:
    """The inverse of `parse_pieces`."""
    return ";".join(f"{_side(dims, p.axis, p.local)}#{_side(dims, p.axis, p.whole)}" for p in pieces)


def _side(dims: int, axis: int, span: tuple[int, int]) -> str:
    spans = [f"{span[0]},{span[1]},None" if i == axis else "None,None,None" for i in range(dims)]
    return "|".join(spans)
