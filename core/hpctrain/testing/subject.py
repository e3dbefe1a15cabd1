"""A cluster plugin under test: its facts with their lines, its examples planned and rendered.

Nothing of the tester's computer takes part: no settings, no site hooks, no site file but the policy of one
that administrators installed, and roles are bound as on a computer that is not the cluster.
"""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.hooks.load import SINGULAR, find, load
from hpctrain.hooks.scan import Entry, names
from hpctrain.model.cluster import Cluster
from hpctrain.model.job import JobFiles
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.words import Join, Var, Word
from hpctrain.render.tree import Sources, tree
from hpctrain.run.prepare.bind import bind
from hpctrain.runfile.facts import load_cluster
from hpctrain.runfile.reading.text import Document, read_toml
from hpctrain.session import Session
from hpctrain.ui.problem import problem_lines
from hpctrain.ui.term import Term

SHAPES = Path(__file__).parent / "shapes"
"""Run files of every size that every cluster must plan."""


def environ(site: str = "/dev") -> dict[str, str]:
    """An environment without settings or site hooks, and with no site's facts: /dev holds none."""
    return {
        "HOME": "/nonexistent",
        "USER": "somebody",
        "PATH": "/usr/bin:/bin",
        "HPCTRAIN_SITE": site,
        "HPCTRAIN_DISABLE_HOOKS": " ".join(names("hooks")),
    }


@contextmanager
def plain_failures() -> Iterator[None]:
    """Fail with what is wrong with the plugin; the way through hpctrain to it helps nobody."""
    try:
        yield
    except HpctrainError as error:
        pytest.fail("\n".join(problem_lines(error.problems, Term(io.StringIO()))), pytrace=False)


ROLES = ("assets", "checkpoints", "env", "runs", "state")
"""Storage that every run may need."""


class Subject:
    """One installed cluster plugin."""

    sets: tuple[str, ...] = ()
    """Values of every run, as `--set` takes them."""

    def __init__(self, name: str, examples: tuple[str, ...], account: str) -> None:
        self.name = name
        self.account = account
        self.environ = environ()
        self._examples = examples
        self._plans: dict[Path, Plan] = {}

    @cached_property
    def entry(self) -> Entry:
        """The plugin's entry point; ConfigError when no installed distribution has it."""
        return self.installed("clusters", self.name)

    @staticmethod
    def installed(kind: str, name: str) -> Entry:
        """The entry point of a plugin; a ConfigError says how its author installs it."""
        if name in names(kind):
            return find(kind, name)
        raise ConfigError.of(
            "no-plugin",
            f'no {SINGULAR[kind]} "{name}" is installed in {sys.prefix}',
            hint="pip install -e .      (in the folder of its pyproject.toml)",
        )

    def read(self) -> None:
        """Read all that must be readable before anything else can be tested."""
        load(self.entry)
        load_cluster(self.folder)

    @cached_property
    def unreadable(self) -> HpctrainError | None:
        """Why nothing of it can be tested."""
        try:
            self.read()
        except HpctrainError as error:
            return error
        return None

    @cached_property
    def folder(self) -> Path:
        """The plugin's own folder, found without importing it."""
        spec = importlib.util.find_spec(self.entry.module)
        if spec is None or not spec.origin:
            raise ConfigError.of("plugin-import", f"{self.entry.label}: there is no {self.entry.module}")
        return Path(spec.origin).parent

    @cached_property
    def examples(self) -> list[Path]:
        """The run files that the plugin brings as examples."""
        if self._examples:
            return [self.folder / name for name in self._examples]
        return sorted((self.folder / "examples").glob("*.toml"))

    @cached_property
    def facts(self) -> Cluster:
        """The cluster in the plugin's `cluster.toml`; ConfigError lists all that is wrong with it."""
        return load_cluster(self.folder)

    @cached_property
    def document(self) -> Document:
        """The text of the plugin's `cluster.toml`, in which every fact has a line."""
        return read_toml(self.folder / "cluster.toml")

    @cached_property
    def missing_roles(self) -> list[str]:
        """Storage that every run may need and the facts lack; [] where they cannot be read at all."""
        try:
            return [role for role in ROLES if role not in self.facts.storage]
        except ConfigError:
            return []

    def line(self, *path: str | int) -> str:
        """`…/cluster.toml:212`: where a fact stands, for messages."""
        span = self.document.span(path)
        return f"{span.file}:{span.line}"

    def session(self, run_file: Path, *more: str) -> Session:
        """A run on this cluster, not planned yet; `more` are values as `--set` takes them."""
        sets = (f"resources.account={json.dumps(self.account)}", *self.sets, *more)
        return Session(run_file, on=self.name, sets=sets, environ=self.environ)

    def unpaid_session(self, run_file: Path) -> Session:
        """A run on this cluster with the account that the run file names, if any; not planned yet."""
        return Session(run_file, on=self.name, sets=self.sets, environ=self.environ)

    def plan(self, run_file: Path) -> Plan:
        """The plan of a run file here; made once."""
        if run_file not in self._plans:
            with plain_failures():
                self._plans[run_file] = self.session(run_file).plan()
        return self._plans[run_file]

    def scripts(self, run_file: Path) -> dict[str, str]:
        """Every bash script of the run, by its path in the run directory."""
        with plain_failures():
            session = self.session(run_file)
            files = rendered(session, binding_of(session))
        return {path: text for path, text in files.items() if path.endswith(".sh") and isinstance(text, str)}


@cache
def subject_of(name: str, examples: tuple[str, ...], account: str) -> Subject:
    """The subject of a test class; its plans are shared by all tests."""
    return Subject(name, examples, account)


VARIABLE_VALUES = {"USER": "somebody", "UID": "1000", "HOME": "/home/somebody", "HPC_ACCOUNT": "abc123"}


def binding_of(session: Session) -> Binding:
    """Where the roles lie for somebody on the cluster, the same on every computer.

    A variable of its login nodes is a folder of that name; those of a node's own storage stay open.
    """
    binding = bind(session.cluster, session.run, session.environ, on_cluster=False)
    late = {role for role, facts in session.cluster.storage.items() if facts.node_local}
    roots = {role: root if role in late else _expanded(root) for role, root in binding.roots.items()}
    return attrs.evolve(binding, roots={**roots, "runfile": "/nonexistent/runfile"})


def _expanded(word: Word) -> str:
    if isinstance(word, Join):
        return "".join(map(_expanded, word.parts))
    return VARIABLE_VALUES.get(word.name, f"/{word.name.lower()}") if isinstance(word, Var) else str(word)


def rendered(session: Session, binding: Binding) -> dict[str, str | bytes]:
    """The run directory, but for the code that travels with it."""

    def render(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
        job_files = session.hooks.need("render_job", step=step, plan=plan, binding=binding)
        assert isinstance(job_files, JobFiles)
        return job_files

    return tree(session.plan(), binding, render, Sources(run_file=""))
