"""Which data each kind of NeoX training reads: pretraining, sft, dpo, rm, kto."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain_plugins.trainers.external.config import Config, Fault

SPLITS = ("train", "valid", "test")
_PAIRS = ("pos_{}_data_paths", "neg_{}_data_paths")
_PAIR_LABELS = ("pos_{}_label_data_paths", "neg_{}_label_data_paths")
_IMPL = {"dpo": "pairwise", "rm": "pairwise", "kto": "gpt2", "reinforce": "online"}
_NEEDED = {
    "dpo": _PAIRS,
    "rm": _PAIRS,
    "kto": ("{}_data_paths", "{}_label_data_paths", "{}_reward_data_paths"),
}
_RECOMMENDED = {"dpo": _PAIR_LABELS, "rm": _PAIR_LABELS}


def kind(config: Config) -> str:
    """pretrain, sft, dpo, rm, kto or reinforce."""
    impl = config.text("train_impl").lower()
    if impl in _IMPL:
        return impl
    return "sft" if config.get("train_label_data_paths") else "pretrain"


def path_keys() -> tuple[str, ...]:
    """Every key that holds paths of data."""
    parts = ("", "label_", "reward_")
    plain = [f"{split}_{part}data_paths" for split in SPLITS for part in parts]
    pairs = [
        f"{side}_{split}_{part}data_paths"
        for side in ("pos", "neg")
        for split in SPLITS
        for part in parts[:2]
    ]
    return ("data_path", *plain, *pairs)


def faults(config: Config) -> Iterator[Fault]:
    """Data keys that are missing, do not belong together or are of unequal length."""
    training_kind = kind(config)
    yield from _implementation(config, training_kind)
    yield from _splits(config)
    for key in _NEEDED.get(training_kind, ()):
        yield from _missing(config, training_kind, key, fatal=True)
    for key in _RECOMMENDED.get(training_kind, ()):
        yield from _missing(config, training_kind, key, fatal=False)
    if training_kind == "sft":
        yield from _labels(config)
    if training_kind == "pretrain" and not any(config.get(key) for key in path_keys()):
        message = "no data is named: neither data_path nor train_data_paths"
        yield Fault(
            code="trainer-data", message=message, hint='data_path: "{assets.dataset}/text"', fatal=False
        )
    yield from _lengths(config)


def _implementation(config: Config, training_kind: str) -> Iterator[Fault]:
    expected = _IMPL.get(training_kind, "gpt2")
    dataset_impl = config.text("dataset_impl").lower() or "gpt2"
    if dataset_impl != expected:
        path = ("dataset_impl",) if config.get("dataset_impl") else ("train_impl",)
        message = f"{training_kind} reads dataset_impl {expected}, not {dataset_impl}"
        yield Fault(code="trainer-data", message=message, path=path, hint=f"dataset_impl: {expected}")
    if training_kind in ("dpo", "rm", "kto") and config.text("pack_impl").lower() not in ("unpacked",):
        message = f"{training_kind} compares whole answers; packed rows mix them"
        path = ("pack_impl",) if config.get("pack_impl") else ("train_impl",)
        yield Fault(code="trainer-data", message=message, path=path, hint="pack_impl: unpacked", fatal=False)


def _splits(config: Config) -> Iterator[Fault]:
    splits = [split for split in SPLITS if config.get(f"{split}_data_paths") is not None]
    if splits and len(splits) < len(SPLITS):
        absent = ", ".join(f"{split}_data_paths" for split in SPLITS if split not in splits)
        message = f"{splits[0]}_data_paths stands without {absent}"
        yield Fault(code="trainer-data", message=message, path=(f"{splits[0]}_data_paths",))
    if splits and config.get("data_path") is not None:
        message = "data_path and train_data_paths exclude each other"
        yield Fault(code="trainer-data", message=message, path=("data_path",))
    if config.get("train_label_data_paths") and not config.get("train_data_paths"):
        message = "train_label_data_paths needs train_data_paths"
        yield Fault(code="trainer-data", message=message, path=("train_label_data_paths",))


def _missing(config: Config, training_kind: str, key: str, *, fatal: bool) -> Iterator[Fault]:
    name = key.format("train")
    if not config.get(name):
        message = f"{training_kind} needs {name}" if fatal else f"without {name} the prompt is trained too"
        hint = f'{name}: ["{{assets.dataset}}/{name.removesuffix("_data_paths")}"]'
        yield Fault(code="trainer-data", message=message, path=("train_impl",), hint=hint, fatal=fatal)


def _labels(config: Config) -> Iterator[Fault]:
    for split in SPLITS[1:]:
        if config.get(f"{split}_data_paths") and not config.get(f"{split}_label_data_paths"):
            message = f"{split}_data_paths has no {split}_label_data_paths: its prompts count in the loss"
            yield Fault(code="trainer-data", message=message, path=(f"{split}_data_paths",), fatal=False)


def _lengths(config: Config) -> Iterator[Fault]:
    for split in SPLITS:
        names = [key for key in path_keys() if f"{split}_" in key and isinstance(config.get(key), list)]
        weights = f"{split}_data_weights"
        names += [weights] if isinstance(config.get(weights), list) else []
        counts = {name: len(config.get(name)) for name in names}
        for name, count in counts.items():
            if count != counts[names[0]]:
                message = f"{name} has {count} entries, {names[0]} has {counts[names[0]]}"
                yield Fault(code="trainer-data", message=message, path=(name,))
