"""The files that a model needs beside its weights: tokenizer, processors, remote code, licence."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import Any

from hpctrain.plugin import IntegrityError
from hpctrain_job.files import documents

_NEEDED = (
    *("tokenizer*", "*tokenizer.json", "special_tokens_map.json", "added_tokens.json", "tekken.json"),
    *("vocab*.json", "vocab.txt", "merges.txt", "bpe.codes", "normalizer.json", "*.tiktoken", "*.model"),
    *("chat_template*", "additional_chat_templates/*", "generation_config.json"),
    *("preprocessor_config.json", "*processor_config.json", "*image_processor*.json"),
    *("modules.json", "config_sentence_transformers.json", "sentence_*_config.json", "?_*/config.json"),
    *("LICENSE*", "LICENCE*", "NOTICE*", "COPYING*", "USE_POLICY*"),
)
"""Names that the libraries look for, and what a licence asks to be passed on."""

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx")
_REWRITTEN = (
    "config.json",
    "conversion.json",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
_IMPORT = re.compile(r"^\s*(?:from\s+\.(\w+)\s+import|from\s+\.\s+import\s+(\w+))", re.MULTILINE)


def beside(path: Path) -> dict[str, Path]:
    """What goes with the weights of a folder, by its name in that folder."""
    if not path.is_dir():
        return {}
    files = {
        str(f.relative_to(path)): f
        for glob in _NEEDED
        for f in sorted(path.glob(glob))
        if f.is_file() and not f.name.endswith(_WEIGHTS)
    }
    for name in _modules(path):
        if (path / name).is_file():
            files[name] = path / name
    return files


def left_behind(path: Path) -> list[str]:
    """Files of the folder that neither go along nor are written anew; weights of other kinds among them."""
    taken = beside(path)
    return sorted(
        f.name
        for f in path.iterdir()
        if f.is_file() and f.name not in taken and f.name not in _REWRITTEN and not f.name.startswith(".")
    )


def lost(path: Path) -> list[str]:
    """Modules of remote code that a configuration names and the folder does not hold."""
    return [name for name in _modules(path) if not (path / name).is_file()] if path.is_dir() else []


def _modules(path: Path) -> list[str]:
    """Files of remote code: those that an `auto_map` names, and what these import of each other."""
    todo = deque(name for file in sorted(path.glob("*config.json")) for name in _mapped(file))
    done: dict[str, None] = {}
    while todo:
        name = todo.popleft()
        if name in done:
            continue
        done[name] = None
        if (path / name).is_file():
            text = _text(path / name)
            todo += [f"{a or b}.py" for a, b in _IMPORT.findall(text)]
    return list(done)


def _text(module: Path) -> str:
    try:
        return documents.whole(module).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{module} cannot be read: {error}", where=str(module)
        ) from None


def _mapped(file: Path) -> list[str]:
    """The modules in this folder that an `auto_map` leads to; `org/repo--module.Class` is on the hub."""
    try:
        document = documents.read(file)
    except (OSError, ValueError):
        return []
    table = document.get("auto_map") if isinstance(document, dict) else None
    entries: list[Any] = list(table.values()) if isinstance(table, dict) else []
    references = [r for e in entries for r in (e if isinstance(e, list) else [e]) if isinstance(r, str)]
    stems = [r.rpartition(".")[0] for r in references if "--" not in r]
    return [f"{stem}.py" for stem in stems if re.fullmatch(r"\w+", stem)]
