"""The facts: complete, sourced, dated, with reasons; every message names the fact's line."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from hpctrain.defaults.checks import unheard
from hpctrain.model.cluster import Source
from hpctrain.model.step import Need
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject


class FactChecks(Base):
    """Tests of `cluster.toml`: what it must hold."""

    def test_the_plugin_loads(self, subject: Subject) -> None:
        self.must_be_readable()
        name = subject.facts.name
        assert name == self.cluster, f"{subject.line('name')}: the entry point says {self.cluster!r}"

    def test_every_source_has_a_title_and_a_day_in_the_past(self, subject: Subject) -> None:
        none(
            f"{subject.line('source', number)}: [[source]] {source.id!r} {complaint}"
            for number, source in enumerate(subject.facts.source)
            for complaint in _faults(source)
        )

    def test_every_official_source_has_an_address(self, subject: Subject) -> None:
        none(
            f"{subject.line('source', number)}: [[source]] {source.id!r} is official, but has no url"
            for number, source in enumerate(subject.facts.source)
            if source.sure == "official" and not source.url.startswith(("https://", "http://"))
        )

    def test_every_source_without_an_address_says_why(self, subject: Subject) -> None:
        none(
            f"{subject.line('source', number)}: [[source]] {source.id!r} has neither url nor no_url"
            for number, source in enumerate(subject.facts.source)
            if not source.url and not source.no_url
        )

    def test_every_variable_has_a_reason(self, subject: Subject) -> None:
        facts = subject.facts
        wrong = [
            f"{subject.line('network', 'var', number)}: {row.name} has no why"
            for number, row in enumerate(facts.network.var)
            if not row.why.strip()
        ]
        wrong += [
            f"{subject.line('place', number, key)}: the place {place.name} has {key} without a why"
            for number, place in enumerate(facts.place)
            for key in ("env", "modules")
            if getattr(place, key) and not place.why.strip()
        ]
        if facts.modules and (facts.modules.build or facts.modules.run) and not facts.modules.why.strip():
            wrong.append(f"{subject.line('modules')}: [modules] has no why")
        none(wrong)

    def test_every_step_finds_a_place_and_every_file_a_role(self, subject: Subject) -> None:
        facts = subject.facts
        offered = {need for place in facts.place for need in place.provides}
        file = subject.folder / "cluster.toml"
        none(f"{file}: no [[place]] provides {need.value!r}" for need in Need if need not in offered)
        none(
            f"{file}: no [storage.{role}]; add it: path = …, source = … (other tests wait for it)"
            for role in subject.missing_roles
        )

    def test_words_for_the_scheduler_are_for_the_one_that_is_there(self, subject: Subject) -> None:
        file = subject.folder / "cluster.toml"
        none(f"{file}: {problem.message}; {problem.hint}" for problem in unheard(subject.facts))

    def test_a_node_has_the_cores_that_its_ranks_are_given(self, subject: Subject) -> None:
        hardware, per_gpu = subject.facts.hardware, subject.facts.launch.cpus_per_gpu
        needed, have = per_gpu * hardware.gpus_per_node, hardware.cores_per_node
        message = f"{hardware.gpus_per_node} GPUs with {per_gpu} cores each are {needed}; a node has {have}"
        hint = f"cpus_per_gpu = {have // max(1, hardware.gpus_per_node)}"
        none([f"{subject.line('launch')}: {message}; {hint}"] if needed > have else [])

    def test_what_only_the_site_can_confirm_can_be_asked_there(self, subject: Subject) -> None:
        rows = subject.facts.verify
        if not rows:
            none([f"{subject.folder / 'cluster.toml'}: no [[verify]]; which fact may be wrong tomorrow?"])
        for number, row in enumerate(rows):
            where = subject.line("verify", number)
            none([] if row.fact.strip() else [f"{where}: it does not say which fact"])
            none(
                []
                if row.command.strip()
                else [f"{where}: [[verify]] {row.fact!r} has no command that asks for it"]
            )
            try:
                re.compile(row.expect)
            except re.error as error:
                none([f"{where}: expect is not a regular expression: {error}"])


def _faults(source: Source) -> Iterator[str]:
    if not source.title.strip():
        yield "has no title"
    # A day ahead is a reader in another time zone.
    if datetime.date.fromisoformat(source.checked) > datetime.date.today() + datetime.timedelta(days=1):
        yield f"was checked on {source.checked}, which is still to come"
