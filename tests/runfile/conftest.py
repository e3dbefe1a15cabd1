"""A project with a run file, a cluster and the options of two technologies."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs
import pytest

from hpctrain.errors import ConfigError, Problem
from hpctrain.runfile.facts import Facts, load_facts
from hpctrain.runfile.layers.source import read_run
from hpctrain.runfile.load import Loaded, structure_run

DATA = Path(__file__).parent / "data"


@attrs.frozen(kw_only=True)
class Conda:
    """How the environment is made."""

    channel: str = "defaults"
    """Where packages come from."""


@attrs.frozen(kw_only=True)
class Trl:
    method: Literal["full", "lora"] = "full"
    config: str = attrs.field(default="", metadata={"input": True})
    rate: float = 1e-4


OPTIONS: Mapping[tuple[str, str], type] = {("environment", "conda"): Conda, ("train", "trl"): Trl}
CLUSTERS = ("alps", "frontier", "isambard", "leonardo", "local", "olivia")
KNOWN = {
    "environment": ("conda", "venv", "ready"),
    "train": ("trl", "command"),
    "cluster": CLUSTERS,
    "scheduler": ("slurm", "local"),
}


@attrs.frozen
class Project:
    """A folder with `run.toml` and the files that it names."""

    path: Path
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "HPCTRAIN_SITE": str(self.home)}

    def write(self, text: str, name: str = "run.toml") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def replace(self, old: str, new: str) -> None:
        text = (self.path / "run.toml").read_text()
        assert text.count(old) == 1
        self.write(text.replace(old, new))

    def settings(self, text: str) -> None:
        path = self.home / ".config/hpctrain/settings.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def site(self, text: str) -> None:
        (self.home / "frontier.toml").write_text(text)

    def load(self, *sets: str, on: str | None = None) -> tuple[Loaded, Facts]:
        raw = read_run(on=on, sets=sets, environ=self.environ, start=self.path)
        site = self.home / "frontier.toml"
        facts = load_facts(
            DATA / "cluster.toml",
            site=site if site.exists() else None,
            settings=raw.settings,
            user=raw.tiers(),
        )
        return structure_run(raw, facts.run_tiers, options=OPTIONS, known_names=KNOWN), facts

    def problems(self, *sets: str, on: str | None = None) -> Sequence[Problem]:
        with pytest.raises(ConfigError) as caught:
            self.load(*sets, on=on)
        return caught.value.problems

    def attempt(self) -> Sequence[Problem]:
        """The problems, none when it loads; any other exception is a mistake of ours."""
        try:
            self.load()
        except ConfigError as error:
            return error.problems
        return ()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    home = tmp_path / "home"
    home.mkdir()
    folder = home / "project"
    folder.mkdir()
    shutil.copy(DATA / "run.toml", folder)
    (folder / "requirements.txt").write_text("datasets==3.1.0\n")
    (folder / "trl.yaml").write_text("lr: 1\n")
    for name in ("mylib/__init__.py", "data/rows.jsonl"):
        path = folder / name
        path.parent.mkdir()
        path.write_text("x = 1\n")
    return Project(folder, home)


def spot(problem: Problem) -> str:
    """`run.toml:9:1 pakages`: where the caret starts and what it underlines."""
    span = problem.span
    assert span is not None
    said = span.text[span.column - 1 : span.end - 1 if span.end else None]
    return f"{Path(span.file).name}:{span.line}:{span.column} {said}"
