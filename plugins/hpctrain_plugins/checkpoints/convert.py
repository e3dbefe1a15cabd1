"""One checkpoint into another format: the function that the command and a plan's step share."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import links, quantised, record, registry
from hpctrain_plugins.checkpoints.copying.engine import Progress
from hpctrain_plugins.checkpoints.copying.publishing import check_free, publish, sweep
from hpctrain_plugins.checkpoints.crew import SINGLE, Crew
from hpctrain_plugins.checkpoints.formats import request
from hpctrain_plugins.checkpoints.formats.hf import check as hf_check
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from hpctrain_plugins.checkpoints.origins import exactness
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model
from hpctrain_plugins.checkpoints.work import Work

_CHOICES = ("tp", "pp", "iteration", "naming", "layout", "layer_keys", "shard_bytes")
"""Options that only some writers have a use for."""

_CLASSES = ("exact", "rounded", "arithmetic")


def convert(
    source: Path,
    target_format: str,
    out: Path,
    options: ConvertOptions,
    progress: Progress | None = None,
    crew: Crew = SINGLE,
) -> Report:
    """Write `source` as `target_format` to the new folder `out`, verified, or leave nothing.

    Raises IntegrityError when the checkpoint is damaged and ConfigError when the request does not
    fit it. With `dry_run` nothing is written and the report holds the mapping. Of a `crew` each writes and
    compares its share, and the first one publishes.
    """
    began = time.monotonic()
    _check_places(source, out, options)
    writer = _writer(target_format)
    options = _with_optimizer(writer, options)
    name, model, shapes = _checked(source, target_format, options)
    _check_choices(target_format, writer, options)
    output = writer.plan(model, options)
    _check_share(output, target_format, crew.count)
    report = Report(
        source=source,
        source_format=name,
        target_format=target_format,
        out=out,
        tensors=sum(len(f.parts) for f in output.files),
        parameters=model.parameters,
        bytes_written=output.size,
        exactness=_weakest(output),
        decisions={**model.decisions, **output.decisions},
        shapes=shapes,
        ignored=model.ignored,
        mapping=record.mapping(output, source) if options.dry_run else (),
        warnings=tuple(model.warnings),
    )
    if options.dry_run:
        return report
    if crew.leads:
        report = attrs.evolve(report, swept=tuple(sweep(out)))
    with crew.folder(out) as folder:
        report = Work(folder, model, output, options, report, crew).done(progress)
        if crew.leads:
            report = attrs.evolve(report, seconds=round(time.monotonic() - began, 3))
            record.write(folder, report, options)
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
    with_optimizer = options.optimizer or options.ranks is not None or getattr(writer, "OPTIMIZER", False)
    return attrs.evolve(options, optimizer=with_optimizer)


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


def _check_share(output: Output, target_format: str, processes: int) -> None:
    """Refuse more processes than files, since a file is written by one of them."""
    files = len(output.files)
    if files < processes:
        count = "1 file" if files == 1 else f"{files} files"
        message = f"{target_format} is written as {count} here, which {processes} nodes cannot share"
        size = max(1, output.size // processes // 2)
        smaller = f", or files of --shard-bytes {size}" if target_format == "hf" else ""
        raise ConfigError.of("usage", message, where="--nodes", hint=f"--nodes {files} at most{smaller}")


def _weakest(output: Output) -> str:
    classes = (exactness(part) for file in output.files for part in file.parts)
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
