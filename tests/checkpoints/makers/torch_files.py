"""Write a file with torch.save, or load one as safely as torch can: `make PATH` or `load PATH`."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from collections import OrderedDict

import torch


def make(path: str) -> None:
    torch.manual_seed(0)
    base = torch.randn(40, 24)
    value = {
        "plain": base,
        "view": base[8:16],
        "columns": base[:, 4:12],
        "half": torch.randn(33).half(),
        "bf16": torch.randn(5, 7).bfloat16(),
        "scalar": torch.tensor(3, dtype=torch.int64),
        "empty": torch.zeros(0, 3),
        "flags": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(torch.randn(4, 4)),
        "step": 17,
        "nested": OrderedDict(size=torch.Size([2, 3]), dtype=torch.bfloat16, big=2**40),
    }
    torch.save(value, path)
    torch.save({k: v.contiguous() if torch.is_tensor(v) else v for k, v in value.items()}, path + ".flat")
    torch.save({"turned": base.t()}, path + ".turned")
    tensors = {k: v for k, v in value.items() if torch.is_tensor(v)}
    raw = {
        k: v.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes().hex()
        for k, v in tensors.items()
    }
    print(json.dumps(raw))


def load(path: str) -> None:
    value = torch.load(path, weights_only=True, mmap=True)
    import zipfile

    assert zipfile.ZipFile(path).testzip() is None

    def plain(item):
        if torch.is_tensor(item):
            raw = item.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex()
            return {"dtype": str(item.dtype), "shape": list(item.shape), "raw": raw}
        if isinstance(item, dict):
            return {k: plain(v) for k, v in item.items()}
        return [plain(i) for i in item] if isinstance(item, (list, tuple)) else item

    print(json.dumps(plain(value)))


{"make": make, "load": load}[sys.argv[1]](sys.argv[2])
