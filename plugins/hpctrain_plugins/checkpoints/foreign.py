"""Folders that no format reads and that have a name all the same: what they are, and the way on."""

from __future__ import annotations

from pathlib import Path

import attrs

from hpctrain_job.files import documents


@attrs.frozen
class _Sign:
    """Files that give a kind of folder away."""

    glob: str
    kind: str
    remedy: str


_HF = "transformers: AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER)"
_SIGNS = (
    _Sign(
        "*.gguf", "holds weights for llama.cpp (GGUF), rounded for it", "the model that they were made from"
    ),
    _Sign(
        "consolidated.*.pth",
        "holds a Llama as Meta publishes it",
        "python -m transformers.models.llama.convert_llama_weights_to_hf --input_dir FOLDER",
    ),
    _Sign("tf_model.h5", "holds weights of TensorFlow", _HF),
    _Sign("flax_model.msgpack", "holds weights of Flax", _HF),
    _Sign(
        "*.distcp",
        "is torch's distributed checkpoint without .metadata, which is written last: the save was cut short",
        "an earlier checkpoint of the run",
    ),
)


def recognised(path: Path) -> tuple[str, str] | None:
    """What the folder is, for the sentence `FOLDER …`, and what to do; also where it lies one step below."""
    if not path.is_dir():
        return None
    for place in (path, *sorted(p for p in path.iterdir() if p.is_dir())):
        backend = megatron_backend(place)
        if backend not in ("", "torch_dist"):
            return (
                f"is a checkpoint of Megatron-Core in its format {backend}",
                "save it with --ckpt-format torch_dist",
            )
        if backend:
            return (
                "is a checkpoint of Megatron-Core without its directory, .metadata",
                "an earlier checkpoint of the run",
            )
        sign = next((s for s in _SIGNS if any(place.glob(s.glob))), None)
        if sign is not None:
            return sign.kind, sign.remedy
    return None


def megatron_backend(step: Path) -> str:
    """In which of its formats Megatron-Core wrote this, as it notes when all else is written; or nothing."""
    try:
        document = documents.read(step / "metadata.json")
    except (OSError, ValueError):
        return ""
    return str(document.get("sharded_backend", "")) if isinstance(document, dict) else ""
