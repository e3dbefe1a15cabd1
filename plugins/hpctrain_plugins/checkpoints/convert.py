"""One checkpoint into another format: the function that the command and a plan's step share."""

from __future__ import annotations

import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import links, quantised, record, registry
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.copying.disks import is_local
from hpctrain_plugins.checkpoints.copying.engine import Copy, Pair, Progress, compare, run
from hpctrain_plugins.checkpoints.copying.publishing import check_free, private_folder, publish, sweep
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.copying.writeback import Writeback
from hpctrain_plugins.checkpoints.formats import request
from hpctrain_plugins.checkpoints.formats.hf import check as hf_check
from hpctrain_plugins.checkpoints.layout import Layout
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from hpctrain_plugins.checkpoints.origins import exactness
from hpctrain_plugins.checkpoints.tensors import Model

_CHOICES = ("tp", "pp", "iteration", "naming", "layout", "layer_keys", "shard_bytes")
"""Options that only some writers have a use for."""

_CLASSES = ("exact", "rounded", "arithmetic")


def convert(
    source: Path,
    target_format: str,
    out: Path,
    options: ConvertOptions,
    progress: Progress | None = None,
) -> Report:
    """Write `source` as `target_format` to the new folder `out`, verified, or leave nothing.

    Raises IntegrityError when the checkpoint is damaged and ConfigError when the request does not
    fit it. With `dry_run` nothing is written and the report holds the mapping.
    """
    began = time.monotonic()
    _check_places(source, out, options)
    writer = _writer(target_format)
    options = _with_optimizer(writer, options)
    name, model, shapes = _checked(source, target_format, options)
    _check_choices(target_format, writer, options)
    layout = writer.plan(model, options)
    report = Report(
        source=source,
        source_format=name,
        target_format=target_format,
        out=out,
        tensors=sum(len(f.parts) for f in layout.files),
        parameters=model.parameters,
        bytes_written=layout.size,
        exactness=_weakest(layout),
        decisions={**model.decisions, **layout.decisions},
        shapes=shapes,
        ignored=model.ignored,
        mapping=record.mapping(layout, source) if options.dry_run else (),
        warnings=tuple(model.warnings),
    )
    if options.dry_run:
        return report
    report = attrs.evolve(report, swept=tuple(sweep(out)))
    with private_folder(out) as folder:
        report = _write(folder, model, layout, options, progress, report, began)
        publish(folder, out, fsync=options.fsync)
    return report


def _check_places(source: Path, out: Path, options: ConvertOptions) -> None:
    """Refuse a name that is taken, and links in a source that lead where they should not."""
    if not options.dry_run:
        check_free(out)
    for folder in (source, options.base, options.config, options.tokenizer):
        if folder is not None and folder.is_dir():
            links.check(folder)


def _writer(target_format: str) -> Any:
    writer = registry.load(target_format)
    if not hasattr(writer, "plan"):
        raise ConfigError.of("checkpoint-format", f"{target_format} can be read but not written")
    return writer


def _with_optimizer(writer: Any, options: ConvertOptions) -> ConvertOptions:
    """The options, with `optimizer` set where only checkpoints with one are written."""
    wanted = options.optimizer or options.ranks is not None or getattr(writer, "OPTIMIZER", False)
    return attrs.evolve(options, optimizer=wanted)


def _checked(source: Path, target_format: str, options: ConvertOptions) -> tuple[str, Model, str]:
    """The format of the source, what it holds, and what says the shapes; or why it cannot be converted."""
    name = options.source_format
    if name == "auto":
        name = registry.detect(source, among=request.FORMATS if options.optimizer else ())
    if options.optimizer:
        request.check(name, target_format, options)
    model = _read(name, source, options)
    proven = hf_check.check(model, source)
    quantised.check(model, options)
    model.crcs |= record.checksums(model, source)
    if options.verify == "logits":
        from hpctrain_plugins.checkpoints.logits import hf  # few compare logits

        hf.check(model.config)
    return name, model, "configuration" if proven else model.shapes


def _weakest(layout: Layout) -> str:
    classes = (exactness(part) for file in layout.files for part in file.parts)
    return max(classes, key=_CLASSES.index, default="exact")


def _check_choices(target: str, writer: Any, options: ConvertOptions) -> None:
    """Refuse an option that what is written has no use for; a format of others may not say which it has."""
    taken = getattr(writer, "CHOICES", _CHOICES)
    default = ConvertOptions()
    for name in _CHOICES:
        if name not in taken and getattr(options, name) != getattr(default, name):
            flag = "--" + name.replace("_", "-")
            takes = ", ".join("--" + choice.replace("_", "-") for choice in taken)
            message = f"{flag} has no meaning for what is written as {target}, which takes {takes}"
            raise ConfigError.of("usage", message, where=flag, hint=f"leave {flag} out")


def _read(name: str, source: Path, options: ConvertOptions) -> Model:
    """Read headers; a mutilated file can break any assumption, and it is the file's fault."""
    try:
        return registry.load(name).read(source, options)
    except OSError as error:
        message = f"{error.filename or source} cannot be read ({error.strerror})"
        raise ConfigError.of("checkpoint-missing", message, where=str(source)) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"{source} is not a valid {name} checkpoint ({type(error).__name__}: {error})"
        raise IntegrityError.of("checkpoint-damaged", message, where=str(source)) from error


def _write(
    folder: Path,
    model: Model,
    layout: Layout,
    options: ConvertOptions,
    progress: Progress | None,
    report: Report,
    began: float,
) -> Report:
    ledger = Ledger(model.crcs)
    replicas = [Pair(a, b, "ranks that must hold the same") for a, b in model.replicas]
    moved = report.exactness == "exact"
    direct = moved and options.fsync and is_local(folder)
    with Writeback() if options.fsync else nullcontext() as writeback:
        copy = Copy(folder, layout.files, progress, writeback, direct=direct)
        copy.allocate()
        run(compare(replicas), ledger, options.workers())
        run(copy.tasks(), ledger, options.workers(cached=moved and not direct))
    checked = ledger.check()
    crcs = copy.seal()
    for name, path in layout.copies.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    for name, text in layout.texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    done = attrs.evolve(
        report,
        bytes_checked=checked,
        mapping=record.mapping(layout, report.source, [c for file in crcs for c in file]),
    )
    record.write(folder, done, options)
    if options.verify != "none":
        again = _roundtrip(model, folder, options, done, copy)
        compared = sum(t.nbytes for t in again.tensors.values())
        done = attrs.evolve(done, verified=options.verify, bytes_compared=compared)
        if options.verify == "logits":
            done = attrs.evolve(done, logits=_logits(model, again, folder, options, done))
    done = attrs.evolve(done, seconds=round(time.monotonic() - began, 3))
    record.write(folder, done, options)
    return done


def _plainly(options: ConvertOptions) -> ConvertOptions:
    """The options with which a written checkpoint is read again: none that are about its source."""
    return attrs.evolve(options, tag="", base=None, config=None, tokenizer=None, masters=False)


def _logits(
    model: Model, again: Model, folder: Path, options: ConvertOptions, report: Report
) -> dict[str, Any]:
    from hpctrain_plugins.checkpoints.logits.compare import Side, compare  # few compare logits

    source = Side(report.source, report.source_format, model, options)
    target = Side(folder, report.target_format, again, _plainly(options))
    return compare(source, target, report.exactness)


def _roundtrip(model: Model, folder: Path, options: ConvertOptions, report: Report, copy: Copy) -> Model:
    """Read the written files as anybody would and compare every tensor with the source."""
    reader = registry.load(report.target_format)
    again = reader.read(folder, _plainly(options))
    lost = sorted(set(model.tensors) ^ set(again.tensors))
    if lost:
        raise IntegrityError.of(
            "checkpoint-roundtrip", f"{lost[0]} is not the same set of tensors", where=lost[0]
        )
    pairs = [Pair(a, b, "ranks of what was written") for a, b in again.replicas]
    for name, left in model.tensors.items():
        right = again.tensors[name]
        if right.dtype != target_dtype(left, options.target_dtype):
            raise IntegrityError.of(
                "checkpoint-roundtrip", f"{name} was written as {right.dtype}", where=name
            )
        pairs.append(Pair(left, right, "the source and what was written"))
    ledger = Ledger(copy.uncertain(again.crcs))  # the source was checked when it was copied
    run(compare(pairs), ledger, options.workers(), copy.paths if copy.direct else frozenset())
    ledger.check()
    return again
