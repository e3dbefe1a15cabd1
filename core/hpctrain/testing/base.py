"""What every area of the kits shares: the attributes of a subclass, its subject, what it leaves out."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from hpctrain.errors import HpctrainError
from hpctrain.testing.subject import SHAPES, Subject, subject_of
from hpctrain.ui.problem import problem_lines
from hpctrain.ui.term import Term

LOADS = "test_the_plugin_loads"
"""How the names of the tests begin that read a plugin for the first time."""


class Kit:
    """What the kit of every kind has: tests that a subclass may leave out, each with its reason."""

    without: ClassVar[Mapping[str, str]] = {}
    """Tests that cannot hold here, by name without `test_`, each with the reason."""

    @pytest.fixture(autouse=True)
    def _left_out(self, request: pytest.FixtureRequest) -> None:
        reason = self.without.get(request.function.__name__.removeprefix("test_"))
        if reason:
            pytest.skip(reason)

    def test_what_is_left_out_exists_and_says_why(self) -> None:
        test_names = {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")}
        none(sorted(set(self.without) - test_names), "`without` names no test of the kit:")
        silent = sorted(name for name, reason in self.without.items() if not reason.strip())
        none(silent, "`without` gives no reason for:")


class Base(Kit):
    """The attributes that a subclass sets."""

    cluster: ClassVar[str] = ""
    """The name that users write: `cluster = "lumi"`."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Run files below the plugin's folder; empty: all of `examples/*.toml`."""
    account: ClassVar[str] = "abc123"
    """What the examples' jobs are charged to: an account as this site spells them."""
    golden: ClassVar[Path | None] = None
    """A folder for `<cluster>/<example>/`: the plan and scripts as they must stay; None: none are kept."""
    goldens: ClassVar[tuple[str, ...]] = ()
    """Stems of the examples that are kept there; empty: the first."""

    @classmethod
    def subject_here(cls) -> Subject:
        """The cluster plugin that is tested, found once for each class of tests."""
        return subject_of(cls.cluster, cls.examples, cls.account)

    @pytest.fixture
    def subject(self) -> Subject:
        """The cluster plugin that is tested."""
        return self.subject_here()

    @pytest.fixture(autouse=True)
    def _readable(self, request: pytest.FixtureRequest) -> None:
        # One test says why nothing can be read; all others would repeat it.
        if not request.function.__name__.startswith(LOADS) and self.subject_here().unreadable:
            pytest.skip(f"the plugin cannot be read: {LOADS} says why")

    def must_be_readable(self) -> None:
        """Fail with all that is wrong with a plugin that cannot be read."""
        if error := self.subject_here().unreadable:
            none(problem_lines(error.problems, Term(io.StringIO())))

    @pytest.fixture(autouse=True)
    def _whole(self, request: pytest.FixtureRequest) -> None:
        # One readable failure, in the test of the facts, instead of one in each test that plans.
        if "shape" in request.fixturenames or "example" in request.fixturenames:
            missing = self._missing_roles()
            if missing:
                pytest.skip(f"cluster.toml has no [storage.{missing[0]}]")

    def _missing_roles(self) -> list[str]:
        try:
            return self.subject_here().missing_roles
        except HpctrainError:
            return []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each example, and for each shape of run that every cluster must plan."""
        for name, paths in (("example", _examples), ("shape", _shapes)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, paths(type(self)), ids=_stem)


def none(complaints: Iterable[str], heading: str = "") -> None:
    """Fail with every line of `complaints`, below what they mean; the message says it all."""
    lines = list(complaints)
    if lines:
        pytest.fail("\n".join([heading, *lines] if heading else lines), pytrace=False)


def _examples(cls: type[Base]) -> list[Path]:
    """No examples where the plugin is broken: `test_the_plugin_loads` says what is wrong with it."""
    try:
        return cls.subject_here().examples
    except HpctrainError:
        return []


def _shapes(_: type[Base]) -> list[Path]:
    return sorted(SHAPES.glob("*.toml"))


def _stem(path: Path) -> str:
    return path.stem
