"""Pure hooks touch nothing: planning and rendering are watched while they run."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from hpctrain.hooks.scan import installed
from hpctrain.model.plan import Survey
from hpctrain.testing.audit import Watch, watched
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject, binding_of, rendered


class PurityChecks(Base):
    """No file, network, process or change of the environment while planning and rendering."""

    def test_planning_touches_nothing(self, subject: Subject, example: Path) -> None:
        session = subject.session(example)
        with watched(package_folders()) as watch:
            plan = session.plan()
            session.hooks.call("check_submit", plan=plan, survey=Survey(is_on_cluster=True))
            session.hooks.call("diagnose_rules")
        _nothing(watch, "planning")

    def test_rendering_touches_nothing(self, subject: Subject, example: Path) -> None:
        session = subject.session(example)
        session.plan()
        binding = binding_of(session)
        with watched(package_folders()) as watch:
            rendered(session, binding)
        _nothing(watch, "rendering")


def package_folders() -> list[str]:
    """The folders of hpctrain and of every installed plugin: their files came with the code."""
    return sorted(set(_folders()))


def _folders() -> Iterator[str]:
    modules = {entry.module for entries in installed().values() for entry in entries}
    for top in sorted({"hpctrain", "hpctrain_job", *(module.partition(".")[0] for module in modules)}):
        spec = importlib.util.find_spec(top)
        yield from spec.submodule_search_locations or () if spec else ()


def _nothing(watch: Watch, doing: str) -> None:
    none(map(str, watch.acts), f"{doing} must not touch the world:")
