"""Which fields the settings read, and whether the data has them: asked where it is staged, before any queue.

`python -m hpctrain_trl.fields SETTINGS.json`, with the standard library alone. Data that cannot be judged
so (another kind of file, a name of the hub) is left to the trainer, which knows the same rules.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hpctrain_job.tables import columns
from hpctrain_trl import arguments
from hpctrain_trl.errors import EXIT_CONFIG, BadConfig
from hpctrain_trl.settings import Settings

Form = tuple[str, tuple[str, ...]]
"""A kind of rows, and the fields that make it: pairs, messages or text."""

_SPLIT = re.compile(r"(?P<name>.+):(?P<split>[A-Za-z_][\w.]*(?:\[[\d:%+]*\])?)\Z")


def split_of(spec: str) -> tuple[str, str]:
    """`("name", "train")` of `name:train`; a path that exists is never taken apart."""
    match = None if Path(spec).exists() else _SPLIT.match(spec)
    return (match["name"], match["split"]) if match else (spec, "")


def forms(settings: Settings, side: str) -> tuple[Form, ...]:
    """What rows of the `train` or `eval` data may be, in the order in which it is looked for."""
    if settings.method == "pretrain":
        return (("text", (settings.text_field,)),)
    source, target = (getattr(settings, key_of(settings, side, end)) for end in ("source", "target"))
    if source:
        return (("pairs", (source, target)),)
    return (
        ("pairs", ("prompt", "completion")),
        ("messages", (settings.messages_field,)),
        ("text", (settings.text_field,)),
    )


def chosen(settings: Settings, side: str, available: Iterable[str]) -> Form:
    """The first form whose fields are there; the last, which then lacks some, where none is."""
    names, candidates = set(available), forms(settings, side)
    return next((form for form in candidates if names.issuperset(form[1])), candidates[-1])


def key_of(settings: Settings, side: str, end: str) -> str:
    """The setting that names one end of the pairs: the evaluation's own, or the training's."""
    key = f"{side}_{end}_field"
    return key if getattr(settings, key) else f"train_{end}_field"


def missing(settings: Settings, side: str) -> Iterator[BadConfig]:
    """Every field that the settings name and the staged data of this side has not."""
    name, _ = split_of(getattr(settings, f"{side}_dataset"))
    candidates, available = forms(settings, side), set[str]()
    try:
        for names in columns.of(Path(name)):
            available |= names
            if any(available.issuperset(fields) for _, fields in candidates):
                return
    except columns.Unreadable:
        return
    if available:
        yield from _faults(settings, side, available, (f"{name} has: {', '.join(sorted(available))}",))


def _faults(
    settings: Settings, side: str, available: set[str], notes: tuple[str, ...]
) -> Iterator[BadConfig]:
    data = {"train": "the training data", "eval": "the evaluation data"}[side]
    candidates = forms(settings, side)
    if len(candidates) > 1:
        listing = ", ".join(" and ".join(fields) for _, fields in candidates)
        key = f"{side}_source_field"
        yield BadConfig("data-field", f"{data} has none of: {listing}", f'{key} = "…"', notes=notes)
        return
    (kind, fields), ends = candidates[0], ("source", "target")
    keys = [key_of(settings, side, end) for end in ends] if kind == "pairs" else ["text_field"]
    for key, field in zip(keys, fields, strict=True):
        if field not in available:
            hint = f'{key} = "{_nearest(field, available)}"'
            yield BadConfig("data-field", f"{data} has no field {field}", hint, where=key, notes=notes)


def _nearest(field: str, available: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(field, sorted(available), 1, 0.5)
    return near[0] if near else "…"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module: 78 where a field is missing, with a sentence for each."""
    (path,) = sys.argv[1:] if argv is None else argv
    faults: list[BadConfig] = []
    try:
        settings = arguments.read(["--config", path])
        for side in ("train", "eval") if settings.eval_dataset else ("train",):
            faults += missing(settings, side)
    except BadConfig as error:
        faults.append(error)
    for fault in faults:
        print(fault.text, file=sys.stderr)
    return EXIT_CONFIG if faults else 0


if __name__ == "__main__":
    sys.exit(main())
