"""Everything a command of a plugin is written with: its output, the run it opens, tables, plots and progress.

A command is an entry point in the group `hpctrain.commands`; its module is imported when it is called. These
names are API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.lazy import names_of

if TYPE_CHECKING:
    from hpctrain.cli.commands.clusters import read as read_facts
    from hpctrain.cli.out import Out
    from hpctrain.cli.shared.opening import open_session, run_options, stop
    from hpctrain.cli.shared.step_lines import StepLines
    from hpctrain.cli.shared.submitting import report as report_submission
    from hpctrain.cli.show.loss_picture import write as write_loss_picture
    from hpctrain.inputs import detected as detected_cluster
    from hpctrain.run.disk.directory import RunDirectory
    from hpctrain.run.find import find as find_run
    from hpctrain.run.live import LiveRun, graph_of
    from hpctrain.run.prepared import Prepared
    from hpctrain.run.system.tools import Tools
    from hpctrain.session import Session
    from hpctrain.ui.plot import plot
    from hpctrain.ui.problem import problem_json
    from hpctrain.ui.progress import Line as ProgressLine
    from hpctrain.ui.progress import Progress
    from hpctrain.ui.table import Column, Table
    from hpctrain.ui.text import amount as amount_text
    from hpctrain.ui.text import duration as duration_text
    from hpctrain.ui.text import size as size_text
else:
    __getattr__ = names_of(
        __name__,
        {
            "read_facts": "hpctrain.cli.commands.clusters:read",
            "Out": "hpctrain.cli.out:Out",
            "StepLines": "hpctrain.cli.shared.step_lines:StepLines",
            "open_session": "hpctrain.cli.shared.opening:open_session",
            "run_options": "hpctrain.cli.shared.opening:run_options",
            "stop": "hpctrain.cli.shared.opening:stop",
            "find_run": "hpctrain.run.find:find",
            "report_submission": "hpctrain.cli.shared.submitting:report",
            "write_loss_picture": "hpctrain.cli.show.loss_picture:write",
            "RunDirectory": "hpctrain.run.disk.directory:RunDirectory",
            "LiveRun": "hpctrain.run.live:LiveRun",
            "graph_of": "hpctrain.run.live:graph_of",
            "Prepared": "hpctrain.run.prepared:Prepared",
            "Tools": "hpctrain.run.system.tools:Tools",
            "Session": "hpctrain.session:Session",
            "detected_cluster": "hpctrain.inputs:detected",
            "plot": "hpctrain.ui.plot:plot",
            "problem_json": "hpctrain.ui.problem:problem_json",
            "ProgressLine": "hpctrain.ui.progress:Line",
            "Progress": "hpctrain.ui.progress:Progress",
            "Column": "hpctrain.ui.table:Column",
            "Table": "hpctrain.ui.table:Table",
            "amount_text": "hpctrain.ui.text:amount",
            "duration_text": "hpctrain.ui.text:duration",
            "size_text": "hpctrain.ui.text:size",
        },
    )

__all__ = [
    "Column",
    "LiveRun",
    "Out",
    "Prepared",
    "Progress",
    "ProgressLine",
    "RunDirectory",
    "Session",
    "StepLines",
    "Table",
    "Tools",
    "amount_text",
    "detected_cluster",
    "duration_text",
    "find_run",
    "graph_of",
    "open_session",
    "plot",
    "problem_json",
    "read_facts",
    "report_submission",
    "run_options",
    "size_text",
    "stop",
    "write_loss_picture",
]
