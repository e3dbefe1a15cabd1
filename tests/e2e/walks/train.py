"""A stand-in for the document's trainer: its arguments and fields, a word table for a model."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from pathlib import Path

WORDS = ("model", "wandb_project", "run_name", "train_dataset", "eval_dataset", "output_dir")
FIELDS = ("train_source_field", "train_target_field", "eval_source_field", "eval_target_field")
NUMBERS = (
    *("per_device_train_batch_size", "per_device_eval_batch_size", "learning_rate", "warmup_steps"),
    *("num_train_epochs", "eval_steps", "save_steps", "logging_steps"),
)
SEEN = ("http_proxy", "https_proxy", "no_proxy", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VIRTUAL_ENV")


def rows(dataset: str, source: str, target: str) -> list[tuple[str, str]]:
    """The pairs of a file `PATH:SPLIT`; a field that is not there is a mistake in the command."""
    lines = Path(dataset.rpartition(":")[0]).read_text(encoding="utf-8").splitlines()
    return [(row[source], row[target]) for row in map(json.loads, lines)]


def learned(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Word by word, what was seen most often."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        for one, other in zip(source.split(), target.split(), strict=False):
            counts[one][other] += 1
    return {word: found.most_common(1)[0][0] for word, found in sorted(counts.items())}


def main() -> None:
    """Learn, score exact matches, save."""
    parser = argparse.ArgumentParser()
    for name in (*WORDS, *FIELDS):
        parser.add_argument(f"--{name}", required=True)
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=float, required=True)
    said = parser.parse_args()
    table = learned(rows(said.train_dataset, said.train_source_field, said.train_target_field))
    pairs = rows(said.eval_dataset, said.eval_source_field, said.eval_target_field)
    hits = sum(" ".join(table.get(w, w) for w in source.split()) == target for source, target in pairs)
    folder = Path(said.output_dir)
    (folder / "model.json").write_text(json.dumps(table, ensure_ascii=False))
    seen = {name: os.environ.get(name, "") for name in SEEN}
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        seen[name] = f"{len(seen[name])} characters"
    (folder / "seen.json").write_text(json.dumps(seen))
    print(f"learned {len(table)} words; {hits} of {len(pairs)} exact")


if __name__ == "__main__":
    main()
