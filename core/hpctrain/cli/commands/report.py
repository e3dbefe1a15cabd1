"""`hpctrain report`: one HTML file of a run, or of several beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.run.find import find
from hpctrain.run.outcome.summary import Summary
from hpctrain.run.system import files
from hpctrain.ui import text
from hpctrain.ui.markup import SIGNATURE

ENDINGS = (".html", ".htm")


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-o", "--out", "file", type=Path, metavar="FILE.html", help="default: named after the run")
@click.pass_obj
def command(out: Out, runs: tuple[str, ...], file: Path | None) -> int:
    """Write one HTML file of RUN: summary, plots, attempts, checkpoints, settings, versions, diagnosis.

    Several runs are drawn over each other, with what differs. The file needs no network and no other file.
    """
    directories = list(dict.fromkeys(find(run, out.environ) for run in (runs or (None,))))
    summaries = [Summary(directory, out.environ) for directory in directories]
    target = file or Path(_name(summaries))
    _need_own(target)
    from hpctrain.cli.show.report import report

    content = report(summaries, out.environ).encode()
    files.write(target, content)
    if out.flags.json:
        titles = [summary.run.title for summary in summaries]
        out.document("report", runs=titles, file=str(target), size_bytes=len(content))
        return 0
    out.say(f"wrote {target}, {text.size(len(content))}: open it in a browser")
    out.lines([str(target)])
    return 0


def _name(summaries: list[Summary]) -> str:
    """`guanaco-lora-1.html`; of several runs `report.html`."""
    if len(summaries) > 1:
        return "report.html"
    run = summaries[0].run
    return f"{run.name}-{run.number}.html"


def _need_own(target: Path) -> None:
    """Refuse to write over anything but an earlier report."""
    if target.suffix not in ENDINGS:
        raise ConfigError.of(
            "usage", f"report writes HTML, not {target}", hint=f"-o {target.with_suffix('.html')}"
        )
    if not target.is_symlink() and not target.exists():
        return
    with files.naming(target, "read"):
        is_ours = target.is_file() and not target.is_symlink() and _is_report(target)
    if not is_ours:
        hint = f"-o {target.with_name(f'{target.stem}-2{target.suffix}')}"
        raise ConfigError.of("exists", f"{target} exists, and is not a report by hpctrain", hint=hint)


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return SIGNATURE.encode() in file.read(200).splitlines()
