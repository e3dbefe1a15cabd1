"""The list of runs made from this account: append-only, and never the truth.

A run directory says all about itself; the list only saves a search. It can be deleted: `scan`
writes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.record import dump, read_lines
from hpctrain.run.system import files
from hpctrain.run.this_computer import now, state_folder


@frozen(kw_only=True)
class Entry:
    """One run as the list knows it."""

    path: Path
    cluster: str = ""
    time: str = ""

    @property
    def run(self) -> RunDirectory:
        return RunDirectory(self.path)


@frozen
class Registry:
    """`runs.jsonl` in the state folder."""

    path: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Registry:
        return cls(state_folder(environ) / "runs.jsonl")

    def add(self, run: RunDirectory, cluster: str = "") -> None:
        """Note one run; safe from several processes at once."""
        files.make_folder(self.path.parent)
        entry = {"time": now(), "path": str(run.path), "cluster": cluster}
        files.append_line(self.path, dump(entry))

    def entries(self) -> list[Entry]:
        """Every known run in the order in which it was noted, each path once."""
        entries_by_path: dict[str, Entry] = {}
        for line in read_lines(self.path):
            path = line.get("path")
            if isinstance(path, str) and path.startswith("/"):
                time, cluster = str(line.get("time", "")), str(line.get("cluster", ""))
                entries_by_path[path] = Entry(path=Path(path), cluster=cluster, time=time)
        return list(entries_by_path.values())

    def scan(self, roots: Iterable[Path]) -> int:
        """Add the runs below `roots` that are not in the list yet; return how many there were."""
        known_paths = {entry.path for entry in self.entries()}
        new_runs = [run for root in roots for run in runs_below(root) if run.path not in known_paths]
        for run in new_runs:
            self.add(run)
        return len(new_runs)


def runs_below(root: Path) -> list[RunDirectory]:
    """Every run directory of a runs root."""
    with files.naming(root, "read"):
        homes = sorted(path for path in root.glob("[!.]*") if path.is_dir())
    runs = (run for home in homes for run in RunDirectory.all(home))
    return [run for run in runs if run.exists()]
