"""The step `export` in the job: `python -m` this module, then CHECKPOINT OUT SETTINGS.

Runs from the job's zip, in an environment that knows no hpctrain: the settings say in which modules
the formats are, and attrs and yaml, which the environment may lack, lie aside in the zip.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain_job.lacking import NO_PACKAGE, cure, message

if TYPE_CHECKING:
    from hpctrain_plugins.checkpoints.options import Report

NEWEST = "newest"
_ZIP = Path(__file__).parents[3]


def main(argv: Sequence[str] | None = None) -> int:
    """Convert, and say what was done; the exit code is that of the error's class."""
    args = _parser().parse_args(argv)
    sys.path.append(str(_ZIP / "lib"))
    try:
        from hpctrain.plugin import HpctrainError  # it lies in the zip that stands in the path only now
    except ModuleNotFoundError as error:
        return _lacking(error)
    try:
        print(_carried_out(args))
    except ModuleNotFoundError as error:
        return _lacking(error)
    except HpctrainError as error:
        for problem in error.problems:
            print(f"error[{problem.code}]: {problem.message}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="in_job", description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, or FOLDER/newest")
    parser.add_argument("out", type=Path, help="the folder that gets one folder per checkpoint")
    parser.add_argument("settings", type=Path, help="what the plan decided, as JSON")
    return parser


def _carried_out(args: argparse.Namespace) -> str:
    """The line for the log. A job that starts again finds its work done: a folder appears whole."""
    from hpctrain_plugins.checkpoints.copying import one_thread  # as above

    one_thread.ask_for()
    from hpctrain_plugins.checkpoints import registry  # numpy reads the number of threads when it is imported
    from hpctrain_plugins.checkpoints.convert import convert
    from hpctrain_plugins.checkpoints.newest import newest
    from hpctrain_plugins.checkpoints.options import ConvertOptions

    settings = json.loads(args.settings.read_text(encoding="utf-8"))
    for name, module in settings["formats"].items():
        registry.add(name, module)
    source = args.checkpoint
    if source.name == NEWEST:
        source = newest(source.parent / settings["folder"], settings["name"], settings["last"], print)
    out = args.out / source.name
    if out.exists():
        return f"exists: {out}"
    options = ConvertOptions(source_format=settings["from"], verify="roundtrip", threads=settings["threads"])
    return _summary(convert(source, settings["to"], out, options))


def _summary(report: Report) -> str:
    warned = "".join(f"warning: {warning}\n" for warning in report.warnings)
    return warned + (
        f"{report.source} ({report.source_format}) -> {report.target_format}: {report.tensors} tensors, "
        f"{report.bytes_written:,} bytes, {report.exactness}, round trip exact\n{report.out}"
    )


def _lacking(error: ModuleNotFoundError) -> int:
    package = (error.name or "").partition(".")[0]
    print(f"error[{NO_PACKAGE}]: {message('a conversion', package)}", file=sys.stderr)
    print(f"help: {cure(package)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
