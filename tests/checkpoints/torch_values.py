"""What a file of torch holds, to compare with another file's."""

from __future__ import annotations

from typing import Any

from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef


def plain(archive: torchzip.Archive, value: Any) -> Any:
    """Values with the bytes of their tensors, and objects by what they were made from.

    `zero_stage` is left out: DeepSpeed writes a member of an enumeration there, and we the number that it is.
    """
    if isinstance(value, TensorRef):
        tensor = archive.tensor("x", value)
        raw = archive.path.read_bytes()
        spans = [(s.offset, s.offset + tensor.nbytes) for band in tensor.bands for s in band.strips]
        return tensor.dtype, tensor.shape, [raw[a:b] for a, b in spans]
    if isinstance(value, dict):
        return {key: plain(archive, item) for key, item in value.items() if key != "zero_stage"}
    if isinstance(value, (list, tuple)):
        return [plain(archive, item) for item in value]
    return (type(value).__name__, value.args, value.state) if hasattr(value, "origin") else value
