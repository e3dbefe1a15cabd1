"""The run file with all its layers, as a RunSpec: every mistake at once, each with its place."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, Problem, fatal
from hpctrain.model.fields import keys_of
from hpctrain.model.run import Origin, RunSpec, Stack
from hpctrain.runfile.chosen import imply, neutral, technologies, unheard, unused
from hpctrain.runfile.declared import Reader, declare
from hpctrain.runfile.faults import Fault, Mismatch, shown_as, unknown_key
from hpctrain.runfile.judging.rules import RUN_CHECKS, check_overlay, literal_variables
from hpctrain.runfile.judging.strict import Strict, known_as
from hpctrain.runfile.judging.tokens import check_texts, unknown_secrets
from hpctrain.runfile.keys import Keys, dotted, nearest
from hpctrain.runfile.layers.layers import Merged, Tier, in_order, merge
from hpctrain.runfile.layers.source import RunSource

Options = Mapping[tuple[str, str], type]
"""("environment", "conda") -> the technology's Options class."""

Stacks = Mapping[str, Stack]
"""A trainer module's `STACKS`: "2026-11" -> packages that work together."""


@frozen(kw_only=True)
class Loaded:
    """A run that is complete and right, as far as one can tell without its plugins."""

    run: RunSpec
    origins: Mapping[str, Origin]
    """Key path -> where its value came from; keys that nobody said are core's own."""
    files: Mapping[str, Path]
    """Each file of the run as it was written -> where it lies on this machine."""
    contents: Mapping[str, str]
    """Each of them -> the hash of its content."""
    base: Path
    problems: tuple[Problem, ...] = ()
    """Warnings."""


def merged_run(raw: RunSource, below: Iterable[Tier] = ()) -> Merged:
    """All layers of the run folded; `below` are the cluster's (`Facts.run_tiers`)."""
    merged = merge([*below, *raw.tiers()], main=raw.tier)
    merged.data.pop("policy", None)  # facts: load_facts reads them from the same layers
    merged.data.pop("pins", None)  # a lock is a run file too: hpctrain.lock reads its pins
    imply(merged)
    return merged


def structure_run(
    raw: RunSource,
    below: Iterable[Tier] = (),
    *,
    merged: Merged | None = None,
    options: Options | None = None,
    known_names: Mapping[str, Collection[str]] | None = None,
    stacks: Stacks | None = None,
) -> Loaded:
    """The run of these layers, or ConfigError with every problem.

    `merged` is what `merged_run` makes of them, for who has it already. `options` are the classes of the
    technologies in use; `known_names` the names of technologies that are installed, whose tables are legal
    though unused, and of clusters: one file carries all of them. `stacks` are those of the trainer in use.
    """
    below = tuple(below)
    merged = merged or merged_run(raw, below)
    files = (raw.document.file,)
    data, faults = _without_options(merged.data, known_names or {}, options or {})
    strict = Strict(RUN_CHECKS)
    run, more_faults = strict(data, RunSpec)
    faults += more_faults
    in_texts = tuple(check_texts(merged.data))
    faults += (fault for fault in in_texts if fault.fatal)
    overlay_problems = tuple(_elsewhere(raw, known_names or {}))
    answers: dict[str, Any] = {}
    for kind, use in technologies(merged).items():
        answers[kind], more_faults = _options(
            strict, merged.data[kind].get(use, {}), kind, use, options or {}
        )
        faults += more_faults
    wrong = (*merged.problems(faults, files), *fatal(overlay_problems))
    if run is None or wrong:
        raise ConfigError(*in_order(wrong, files))
    run = attrs.evolve(
        run,
        environment=attrs.evolve(run.environment, options=answers.get("environment")),
        train=attrs.evolve(run.train, options=answers.get("train")),
    )
    run, reader = _declared(run, raw, merged, stacks or {})
    origins = {dotted(path): origin for path, origin in merged.origins().items()}
    faults = [
        *unknown_secrets(run.secrets, raw.settings.secrets),
        *literal_variables(run.env),
        *unheard(run.resources.ask, (known_names or {}).get("scheduler", ())),
        *(fault for fault in in_texts if not fault.fatal),
    ]
    warnings = (*unused(merged, below), *merged.problems(faults, files), *overlay_problems)
    return Loaded(
        run=run,
        origins=origins,
        files=reader.files,
        contents=reader.contents,
        base=raw.base,
        problems=warnings,
    )


def _declared(run: RunSpec, raw: RunSource, merged: Merged, stacks: Stacks) -> tuple[RunSpec, Reader]:
    """The run with the packages of its stack and what the files that it names contain."""
    try:
        if run.environment.stack:
            from hpctrain.runfile.stacks import with_stack  # most runs name their packages

            run = with_stack(run, stacks, builds="compile" not in merged.data["environment"])
        return declare(run, lambda path: _base(merged, raw, path))
    except Mismatch as error:
        faults = [*error.faults]
        if raw.replay:
            note = f"a relative path of this record counts from {raw.base}"
            faults = [attrs.evolve(f, notes=(*f.notes, note)) if f.code == "no-file" else f for f in faults]
        raise ConfigError(*merged.problems(faults, (raw.document.file,))) from None


def _elsewhere(raw: RunSource, known_names: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    """What is wrong in `[on.X]` of the clusters that this run is not on, so far as no plugin is asked."""
    strict, clusters = Strict(RUN_CHECKS), known_names.get("cluster", ())
    for name in raw.document.data.get("on", {}):
        if name == raw.cluster:
            continue
        merged = merged_run(raw.on_cluster(name))
        data, faults = _without_options(merged.data, known_names, {})
        # A cluster that nobody knows here may bring technologies that nobody knows either.
        faults = [fault for fault in faults if fault.hint or name in clusters]
        run, more_faults = strict(data, RunSpec)
        faults += (*more_faults, *check_texts(merged.data), *(literal_variables(run.env) if run else ()))
        for fault in faults:
            owner = merged.owner(fault.path)
            if fault.code != "missing-key" and owner is not None and owner.name == f"on.{name}":
                yield merged.problem(fault)
        for fault in check_overlay(name, clusters):
            yield fault.problem(raw.document.span(fault.path, key=True))


def _base(merged: Merged, raw: RunSource, path: Keys) -> Path:
    """Relative paths count from the folder of the file that says them."""
    owner = merged.owner(path)
    if owner is None or owner.document is None or owner.document is raw.document:
        return raw.base
    return Path(owner.document.file).absolute().parent


def _without_options(
    data: Mapping[str, Any], known_names: Mapping[str, Collection[str]], options: Options
) -> tuple[dict[str, Any], list[Fault]]:
    """The neutral keys, and a fault for each table of a technology that nobody has."""
    plain = dict(data)
    faults: list[Fault] = []
    for kind, cls in neutral():
        table = data.get(kind)
        if not isinstance(table, dict):
            continue
        legal = keys_of(cls)
        use = str(table.get("use", ""))
        names = {*known_names.get(kind, ()), use}
        plain[kind] = {key: value for key, value in table.items() if key in legal}
        for key, value in table.items():
            if key in legal:
                continue
            if key not in names or not isinstance(value, dict):
                faults.append(
                    _misplaced(kind, use, key, value, options)
                    or _unknown(kind, key, legal, names, isinstance(value, dict))
                )
    return plain, faults


def _misplaced(kind: str, use: str, key: str, value: Any, options: Options) -> Fault | None:
    """A key of the technology that stands one table too high."""
    cls = options.get((kind, use))
    fields = keys_of(cls) if cls else {}
    option = key if key in fields else known_as(key, fields)
    return _belongs(key, value, f"{kind}.{use}", option).under(kind) if option else None


def _belongs(key: str, value: Any, table: str, option: str) -> Fault:
    return Fault(
        code="unknown-key",
        message=f"unknown key {json.dumps(key, ensure_ascii=False)}; it belongs in [{table}]",
        hint=f"[{table}]\n{option} = {shown_as(value) or '...'}",
        path=(key,),
        at_key=True,
    )


def _unknown(kind: str, key: str, legal: Collection[str], names: Collection[str], is_table: bool) -> Fault:
    words = [*legal, *(name for name in names if name)]
    if key in names:
        message = f"{key} is the name of a technology; its options are a table"
        hint = f"[{kind}.{key}]"
        return Fault(code="wrong-type", message=message, hint=hint, path=(kind, key), at_key=True)
    near = nearest(key, [n for n in names if n] if is_table else words) or nearest(key, words)
    return unknown_key(key, near, words).under(kind)


def _options(
    strict: Strict, table: Any, kind: str, use: str, options: Options
) -> tuple[Any, tuple[Fault, ...]]:
    cls = options.get((kind, use))
    if not isinstance(table, dict):
        return None, ()  # _without_options said so
    if cls is None:
        note = f"{use} has no options"
        faults = tuple(
            attrs.evolve(unknown_key(key, (), ()), notes=(note,)).under(use).under(kind) for key in table
        )
        return None, faults
    answer, faults = strict(table, cls)
    return answer, tuple(_too_low(fault, table, kind).under(use).under(kind) for fault in faults)


def _too_low(fault: Fault, table: Mapping[str, Any], kind: str) -> Fault:
    """Of a key that all technologies share and that stands in the table of one: where it belongs."""
    key = str(fault.path[0]) if len(fault.path) == 1 else ""
    if fault.code != "unknown-key" or key not in keys_of(dict(neutral())[kind]):
        return fault
    return _belongs(key, table[key], kind, key)
