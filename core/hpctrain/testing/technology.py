"""An environment, a scheduler or a trainer under test, on the kit's own machine."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from hpctrain.errors import ConfigError
from hpctrain.hooks.load import SINGULAR, load
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject, environ

MACHINE = Path(__file__).parent / "machine"
"""The site file that makes two nodes with GPUs of the cluster `local`, and run files for one and for both."""

COMMAND = ('train.use="command"', 'train.command.argv=["python", "train.py", "{run}"]')
"""What trains where the trainer is not what is tested."""
READY = ('environment.use="ready"', 'environment.ready.prefix="/opt/env"')
"""Where it trains, where the environment is not what is tested."""


class TechnologySubject(Subject):
    """One installed plugin of `kind`, in the run files of the kit or of its author."""

    def __init__(
        self,
        kind: str,
        technology: str,
        *,
        cluster: str,
        examples: tuple[str, ...],
        account: str,
        sets: tuple[str, ...],
    ) -> None:
        super().__init__(cluster, examples, account)
        self.kind, self.technology, self.sets = kind, technology, sets
        self.templates = sets
        """The same values with `{folder}` in them, for tests that have one of their own."""
        if cluster == "local":
            self.environ = environ(str(MACHINE))

    @cached_property
    def entry(self) -> Entry:
        """The entry point of the plugin that is tested; ConfigError where none is installed."""
        return self.installed(self.kind, self.technology)

    def read(self) -> None:
        """Read all that must be readable before anything else can be tested."""
        Hooks().add(self.entry, load(self.entry))

    @cached_property
    def examples(self) -> list[Path]:
        """The author's run files, else those of the kit."""
        if self._examples:
            return [Path(name) for name in self._examples]
        return sorted(MACHINE.glob("*-node*.toml"))


class TechnologyBase(Base):
    """What the kits of environments and trainers share."""

    kind: ClassVar[str] = ""
    hooks: ClassVar[tuple[str, ...]] = ()
    """The hooks without which a plugin of this kind does nothing."""
    cluster: ClassVar[str] = "local"
    """Where the runs of the kit are planned: its own machine of two nodes, made of `local`; or a cluster that
    is installed, for a technology of one site."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Its own table of a run file: what a user must say, and what you want to have tested."""
    files: ClassVar[Mapping[str, str]] = {}
    """Files that a run reads, by their names; `{folder}` in `options` and `sets` is where they are."""
    sets: ClassVar[tuple[str, ...]] = ()
    """More values of every run, as `--set` takes them: `environment.python="3.12"`."""

    @classmethod
    def technology_subject(cls, table: str, name: str, around: tuple[str, ...]) -> TechnologySubject:
        """The plugin that is tested, chosen and configured by `[table]` of a run file; `around` is the rest
        of the kit's run files, where the author brings none."""
        options = settings(f"{table}.{json.dumps(name)}", cls.options)
        kit_sets = () if cls.examples else around
        sets = (*kit_sets, f"{table}.use={json.dumps(name)}", *options, *cls.sets)
        return _subject(
            cls.kind, name, cls.cluster, cls.examples, cls.account, sets, tuple(cls.files.items())
        )

    def test_the_plugin_loads_and_answers_its_hooks(self) -> None:
        subject = self.subject_here()
        assert isinstance(subject, TechnologySubject)
        self.must_be_readable()
        module = load(subject.entry)
        duty = f"{SINGULAR[self.kind]} {subject.entry.label} must answer"
        none(
            f"{duty} {hook}: def {hook}(…) with @hookimpl in {module.__file__}"
            for hook in self.hooks
            if not hasattr(getattr(module, hook, None), "hpctrain_impl")
        )


@cache
def _subject(
    kind: str,
    name: str,
    cluster: str,
    examples: tuple[str, ...],
    account: str,
    sets: tuple[str, ...],
    files: tuple[tuple[str, str], ...],
) -> TechnologySubject:
    subject = TechnologySubject(kind, name, cluster=cluster, examples=examples, account=account, sets=sets)
    if files:
        folder = temporary_folder()
        write_files(folder, dict(files))
        subject.sets = tuple(value.replace("{folder}", str(folder)) for value in sets)
    return subject


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """The files that a run of the author's reads."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def temporary_folder() -> Path:
    """A folder of a subject, which lives as long as all tests."""
    folder = Path(tempfile.mkdtemp(prefix="hpctrain-kit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def settings(prefix: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A table as values for `--set`, one for each key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from settings(f"{prefix}.{json.dumps(key)}", value)
        else:
            yield f"{prefix}.{key}={json.dumps(value, ensure_ascii=False)}"


def complaints(error: ConfigError) -> str:
    """All that a ConfigError says, on one line."""
    return "; ".join(problem.message for problem in error.problems)
