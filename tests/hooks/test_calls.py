"""Order, attribution, wrappers and the switch: what a run's plugin manager promises."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from hpctrain.errors import PluginError
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.marker import hookimpl
from hpctrain.hooks.scan import Entry
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.step import Launch

GIVEN: dict[str, Any] = {"run": None, "cluster": None, "train": None}


def entry(kind: str, name: str) -> Entry:
    return Entry(kind, name, name, f"dist-{name}", "1")


def network(value: str, **options: Any) -> SimpleNamespace:
    def configure_network() -> Layer:
        return Layer(env=(EnvVar(name="NCCL_NET", value=value, why="test"),))

    return SimpleNamespace(configure_network=hookimpl(**options)(configure_network))


def test_answers_come_lowest_priority_first_and_say_who() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "alps"), network("a"))
    hooks.add(entry("hooks", "acme"), network("b"))
    layers = hooks.call("configure_network", run=None, cluster=None, launch=None)
    assert [layer.env[0].value for layer in layers] == ["a", "b"]
    assert [layer.env[0].source for layer in layers] == ["alps", "hooks:acme"]


def test_tryfirst_marks_the_variables() -> None:
    hooks = Hooks()
    hooks.add(entry("hooks", "acme"), network("b", tryfirst=True))
    (layer,) = hooks.call("configure_network", run=None, cluster=None, launch=None)
    assert layer.env[0].first


def test_hooks_can_be_switched_off() -> None:
    hooks = Hooks(disabled=("acme",))
    hooks.add(entry("hooks", "acme"), network("b"))
    assert hooks.call("configure_network", run=None, cluster=None, launch=None) == ()


def test_trace_prints_every_answer(capsys: pytest.CaptureFixture[str]) -> None:
    hooks = Hooks(trace=True)
    hooks.add(entry("hooks", "acme"), network("b"))
    hooks.call("configure_network", run=None, cluster=None, launch=None)
    assert "hooks:acme configure_network -> Layer(" in capsys.readouterr().err


class Audit:
    @hookimpl(wrapper=True)
    def launch(self, train: Any) -> Any:
        answer = yield
        return attrs.evolve(answer, prefix=("audit",))


class Recover:
    @hookimpl(wrapper=True)
    def launch(self) -> Any:
        try:
            return (yield)
        except PluginError:
            return Launch(nodes=7)


class Core:
    @hookimpl
    def launch(self, run: Any) -> Launch:
        return Launch(nodes=2)


class Raises:
    @hookimpl
    def launch(self) -> Launch:
        raise KeyError("hsn")


def test_a_wrapper_changes_the_answer_and_is_named() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "alps"), Core())
    hooks.add(entry("hooks", "acme"), Audit())
    answer = hooks.call("launch", **GIVEN)
    assert (answer.nodes, answer.prefix) == (2, ("audit",))
    assert answer.source == "alps + hooks:acme"


def test_a_wrapper_may_catch_what_it_wraps() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "alps"), Raises())
    hooks.add(entry("hooks", "acme"), Recover())
    assert hooks.call("launch", **GIVEN).nodes == 7


def test_the_last_registered_answers_first_and_may_decline() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "alps"), Core())
    hooks.add(entry("hooks", "acme"), SimpleNamespace(launch=hookimpl(lambda run: None)))
    assert hooks.call("launch", **GIVEN).nodes == 2


def test_no_answer_names_who_was_asked() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "alps"), network("a"))
    with pytest.raises(PluginError, match="no plugin of this run answers launch; asked: clusters:alps"):
        hooks.need("launch", **GIVEN)


def test_an_observer_that_fails_is_a_warning_and_the_next_is_told() -> None:
    told: list[Any] = []

    @hookimpl
    def job_event(event: Any) -> None:
        told.append(event)

    @hookimpl
    def fails(event: Any) -> None:
        raise OSError("pager is down")

    hooks = Hooks()
    hooks.add(entry("hooks", "one"), SimpleNamespace(job_event=fails))
    hooks.add(entry("hooks", "two"), SimpleNamespace(job_event=job_event))
    hooks.tell(event="submitted")
    assert told == ["submitted"]
    assert "pager is down" in hooks.warnings[0].message


def test_two_plugins_without_hooks_are_two() -> None:
    hooks = Hooks()
    hooks.add(entry("clusters", "small"), SimpleNamespace())
    hooks.add(entry("hooks", "acme"), SimpleNamespace())
    assert [plugin.partition(" ")[0] for plugin in hooks.plugins] == ["clusters:small", "hooks:acme"]
    with pytest.raises(PluginError, match="is registered twice"):
        hooks.add(entry("hooks", "acme"), SimpleNamespace())
