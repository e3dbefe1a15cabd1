"""Data in the three forms the trainer knows: `text`, `messages`, or `prompt` and `completion`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain_trl import fields
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import Settings

_SUFFIXES = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
}
_SAVED = ("dataset_info.json", "dataset_dict.json", "state.json")


def load(settings: Settings, side: str, chat: bool) -> Any:
    """The `train` or `eval` data in a form the trainer knows.

    `chat`: the tokenizer has a template, so that pairs become one user's and one assistant's message.
    """
    spec = getattr(settings, f"{side}_dataset")
    rows = _rows(spec, getattr(settings, f"{side}_subset"))
    if len(rows) == 0:
        raise BadConfig("data-empty", f"{side}_dataset {spec} has no rows")
    kind, named = fields.chosen(settings, side, rows.column_names)
    if kind == "pairs":
        return _pairs(_only(rows, spec, *named), named[0], named[1], chat)
    if kind == "messages":
        return _messages(rows, named[0], spec, chat)
    return _texts(rows, named[0], spec)


def _rows(spec: str, subset: str) -> Any:
    """Open the data set that `PATH`, `PATH:SPLIT` or `NAME:SPLIT` names."""
    name, split = fields.split_of(spec)
    if Path(name).is_file() and Path(name).stat().st_size == 0:
        raise BadConfig("data-empty", f"{name} is an empty file")
    try:
        return _opened(name, subset, split)
    except BadConfig:
        raise
    except Exception as error:  # readers of many formats raise what they like
        cause = error.__cause__ or error
        raise BadConfig("data", f"{spec} cannot be read: {_first_line(cause)}") from error


def _opened(name: str, subset: str, split: str) -> Any:
    import datasets

    path = Path(name)
    if any((path / mark).is_file() for mark in _SAVED):
        return _select_split(datasets.load_from_disk(name), split, name)
    if not path.is_file():
        return _select_split(datasets.load_dataset(name, subset or None, split=split or None), split, name)
    kind = _SUFFIXES.get(path.suffix)
    if kind is None:
        raise BadConfig("data-kind", f"{name} is of a kind that is not known", " ".join(_SUFFIXES))
    how = {"sep": "\t"} if path.suffix == ".tsv" else {}
    return _select_split(datasets.load_dataset(kind, data_files=name, **how), split, name)


def _select_split(dataset: Any, split: str, spec: str) -> Any:
    """One split of what was found; the only one, or `train`, where none was named."""
    if not isinstance(dataset, dict):
        return dataset
    name = split or ("train" if "train" in dataset else next(iter(dataset)))
    if name not in dataset:
        raise BadConfig("data-split", f"{spec} has no split {name}", " ".join(dataset))
    return dataset[name]


def _only(rows: Any, spec: str, *named: str) -> Any:
    """Only these fields, each checked to be there and to be text in every row."""
    for field in named:
        if field not in rows.column_names:
            available = ", ".join(rows.column_names)
            raise BadConfig("data-field", f"{spec} has no field {field}", f"there are: {available}")
    rows = rows.select_columns(list(named))
    for field in named:
        kind = getattr(rows.features[field], "dtype", type(rows.features[field]).__name__)
        if kind not in ("string", "large_string"):
            raise BadConfig("data-type", f"field {field} of {spec} holds {kind}, not text")
        empty = next((i for i, text in enumerate(rows[field]) if text is None), None)
        if empty is not None:
            raise BadConfig("data-type", f"field {field} of {spec} is empty in row {empty + 1}")
    return rows


def _texts(rows: Any, field: str, spec: str) -> Any:
    rows = _only(rows, spec, field)
    return rows if field == "text" else rows.rename_column(field, "text")


def _messages(rows: Any, field: str, spec: str, chat: bool) -> Any:
    if not chat:
        raise BadConfig("template", f"{spec} holds messages, but the tokenizer has no chat template")
    rows = rows.select_columns([field])
    return rows if field == "messages" else rows.rename_column(field, "messages")


def _pairs(rows: Any, source: str, target: str, chat: bool) -> Any:
    form = _as_chat if chat else _as_lines
    return rows.map(
        form,
        fn_kwargs={"source": source, "target": target},
        remove_columns=rows.column_names,
        desc="Pairs",
    )


def _as_chat(row: dict[str, str], source: str, target: str) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": row[source]}],
        "completion": [{"role": "assistant", "content": row[target]}],
    }


def _as_lines(row: dict[str, str], source: str, target: str) -> dict[str, Any]:
    return {"prompt": row[source] + "\n", "completion": row[target]}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
