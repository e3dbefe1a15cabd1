"""What `convert` tells: a line while it works, what it did, and the table of a dry run."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpctrain.command import Column, Out, Progress, ProgressLine, Table, amount_text, duration_text, size_text
from hpctrain.plugin import Problem
from hpctrain_plugins.checkpoints.copying.engine import Progress as Told
from hpctrain_plugins.checkpoints.options import Report
from hpctrain_plugins.checkpoints.record import RECORD

_DONE = {"exact": "exact", "rounded": "rounded", "arithmetic": "merged"}
_TYPES = {"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"}
_NAMED = 3
"""Sources of a tensor that a row of the table names."""
_LISTED = 8
"""Files that were left behind, as one line names them; the record has all."""
_DECISION_WORDS = {"source_tp": "tp", "zero_stage": "stage", "data_parallel_ranks": "ranks"}


@contextmanager
def converting(out: Out) -> Iterator[Told | None]:
    """A line with bytes, rate and file; how it went is said by `done`."""
    if out.flags.quiet:
        yield None
        return
    began = time.monotonic()
    lines: list[ProgressLine] = []
    with Progress(out.err, label=10) as progress:

        def report_progress(done: int, total: int, file: str) -> None:
            if not lines:  # not before: a request that is refused at once needs no line
                lines.append(progress.line("convert", unit="B", since=began))
            lines[0].update(done=done, total=total, note=Path(file).name)

        try:
            yield report_progress
        except BaseException:
            _end(lines, "FAIL")
            raise
        _end(lines, "ok")


def _end(lines: list[ProgressLine], word: str) -> None:
    for line in lines:
        line.end(word, "")


def head(report: Report) -> str:
    """Formats, size and type: `neox (tp 4) -> hf   2.77 B parameters, bf16, 5.5 GB`."""
    decisions = [
        f"{word} {report.decisions[k]}" for k, word in _DECISION_WORDS.items() if k in report.decisions
    ]
    source = f"{report.source_format} ({', '.join(decisions)})" if decisions else report.source_format
    types = Counter(row["dtype"] for row in report.mapping)
    main = ", ".join(_TYPES.get(name, name) for name, _ in types.most_common(2))
    parameters = amount_text(report.parameters)
    size = size_text(report.bytes_written)
    ranks = report.decisions.get("ranks")
    target = f"{report.target_format} (ranks {ranks})" if ranks else report.target_format
    return f"{source} -> {target}   {parameters} parameters, {main}, {size}"


def done(out: Out, report: Report) -> None:
    """Print how a conversion went: time, memory, size, notes."""
    out.say(
        f"{head(report)}, peak memory {size_text(_peak_memory())}",
        f"wrote {_tensors(report)}   {duration_text(report.seconds)}",
        *_notes(report),
        f"verified: every source tensor used once or named{_trip(report)}{_shapes(report)}",
        f"{report.out / RECORD}   each decision and checksum",
    )
    out.warn(_warnings(report))
    out.lines([str(report.out)])


def _peak_memory() -> int:
    """Of this program; what getrusage says is inherited from the one that started it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return 1024 * (peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def mapping(out: Out, report: Report) -> None:
    """What would be written, a row for each tensor."""
    files = Counter(row["name"] for row in report.mapping)
    several = max(files.values(), default=1) > 1
    rank = (Column("RANK", right=True),) if several else ()
    table = Table(
        *(Column("FILE", drop=3), *rank, Column("TENSOR", style="name")),
        *(Column("TYPE"), Column("SHAPE", right=True), Column("HOW", drop=1), Column("FROM", drop=2)),
    )
    counts: Counter[str] = Counter()  # files are in the order of ranks
    for row in report.mapping:
        number = (str(counts[row["name"]]) if files[row["name"]] > 1 else "",) if several else ()
        counts[row["name"]] += 1
        shape = " x ".join(map(str, row["shape"]))
        kind = _TYPES.get(row["dtype"], row["dtype"])
        table.row(row["file"], *number, row["name"], kind, shape, row["how"], _sources(row["from"]))
    out.lines(table.lines(out.term))
    out.say(head(report), f"would write {_tensors(report)}; nothing was written", *_notes(report))
    out.warn(_warnings(report))


def _sources(sources: list[dict[str, str]]) -> str:
    """The names, each once; of many only the first."""
    files = Counter(source["name"] for source in sources)
    named = [name if n == 1 else f"{name} of {n} files" for name, n in files.items()]
    suffix = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + suffix


def _tensors(report: Report) -> str:
    kinds = Counter(row["exactness"] for row in report.mapping)
    how = ", ".join(f"{kinds[kind]} {word}" for kind, word in _DONE.items() if kinds[kind])
    ignored = f", {len(report.ignored)} of the source ignored" if report.ignored else ""
    return f"{report.tensors} tensors: {how}{ignored}"


def _notes(report: Report) -> list[str]:
    """The base of an adapter, why tensors and which files were left out, and what killed conversions left."""
    base = report.decisions.get("base")
    reasons = Counter(report.ignored.values())
    ignored = [f"ignored {number}: {reason}" for reason, number in reasons.most_common()]
    left = report.decisions.get("files_left", [])
    left_line = [f"not copied: {', '.join(left[:_LISTED])}{_rest_count(left)}"] if left else []
    return [*([f"base: {base}"] if base else []), *ignored, *left_line, *report.swept]


def _rest_count(names: list[str]) -> str:
    return f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""


def _warnings(report: Report) -> list[Problem]:
    return [Problem(code="checkpoint-config", message=warning, fatal=False) for warning in report.warnings]


def _shapes(report: Report) -> str:
    if report.shapes == "unproven":
        return "; unproven: shapes, which the configuration does not say for every tensor"
    return f"; shapes as the {report.shapes} says"


def _trip(report: Report) -> str:
    if report.verified == "none":
        return ""
    if not report.logits:
        return "; round trip exact"
    return f"; round trip exact; logits equal within {report.logits['difference']:.0e}{_judges(report)}"


def _judges(report: Report) -> str:
    """Who computed: two ways that share nothing, or our own alone, and why."""
    library = report.logits["library"]
    if "by" in library:
        return f", by {library['by']} within {library['difference']:.0e}"
    ways = {report.logits["source_flow"], report.logits["target_flow"]}
    authors = (
        "two ways of our own" if len(ways) > 1 else "one way of our own, which proves values and no meaning"
    )
    return f", by {authors}: {library['reason']}"
