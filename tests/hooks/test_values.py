"""A value of the wrong type inside a plugin's answer is refused where the plugin gave it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from hpctrain.errors import PluginError
from hpctrain.hooks import results, values
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.marker import hookimpl
from hpctrain.hooks.scan import Entry
from hpctrain.model.fields import Form, fields_of, kind_of
from hpctrain.model.job import JobFiles
from hpctrain.model.layer import Bind, EnvVar, File, Layer, Module
from hpctrain.model.step import Artifact, Launch, Need, Pin, Step
from hpctrain.model.train import Layout, Numbers, Pattern, Train
from hpctrain.model.words import Cmd, Join, Loc, Raw, Var

VAR = EnvVar(name="A", value="1", why="test")
RIGHT = Layer(
    env=(VAR, EnvVar(name="B", value=Join("x", Loc("data")), why="test")),
    modules=(Module("x"), Module("", "purge")),
    binds=(Bind(source=Loc("data")), Bind(source="/a", target=Var("B"))),
    job=(Raw("true"), Cmd.of("a", Var("B"), cwd="/x")),
    files=(File(path="a", body=("x", Loc("data"))),),
    ask={"slurm": ("--foo",), "elsewhere": ("--bar",)},
)
STEP = Step(
    name="a-1",
    commands=(Cmd.of("x"),),
    needs={Need.NETWORK},  # type: ignore[arg-type] # what our examples write
    makes=Artifact(name="a", role="env", inputs={"n": [1, {}]}, arch="any", pins=(Pin("a", "b", "c"),)),
    size_gb=3,
    layer=RIGHT,
)
TRAIN = Train(
    argv=("x",),
    layer=RIGHT,
    checkpoints=Layout(format="hf"),
    progress=(Pattern(regex="x", scale={"t": 1e3}),),
    numbers=Numbers(memory_gb=2.0),
)


@pytest.mark.parametrize("value", [RIGHT, STEP, TRAIN, Launch(memory_gb=3)])
def test_what_is_right_passes(value: object) -> None:
    values.check(value)


def var(**fields: Any) -> Layer:
    return Layer(env=(EnvVar(**{"name": "A", "why": "test", **fields}),))


WRONG: dict[str, tuple[Any, str]] = {
    "words": (
        Layer(ask={"slurm": "--foo"}),  # type: ignore[dict-item]
        'Layer.ask["slurm"] is a string; a tuple of words is needed: ("--foo",)',
    ),
    "line": (
        Layer(node=("mkdir -p x",)),  # type: ignore[arg-type]
        'Layer.node[0] is a string; a line (Cmd or Raw) is needed: Cmd.of("mkdir", "-p", "x")',
    ),
    "lines": (
        Layer(job=("mkdir")),  # type: ignore[arg-type]
        'Layer.job is a string; a tuple of lines (Cmd or Raw) is needed: (Cmd.of("mkdir"),)',
    ),
    "comma": (
        Layer(env=VAR),  # type: ignore[arg-type]
        "Layer.env is an EnvVar; a tuple of EnvVar is needed: (EnvVar(...),)",
    ),
    "list": (
        Layer(wrap=["a"]),  # type: ignore[arg-type]
        "Layer.wrap is a list; a tuple of words is needed: tuple(...)",
    ),
    "file": (
        Layer(files=("x",)),  # type: ignore[arg-type]
        "Layer.files[0] is a string; a File is needed",
    ),
    "number": (var(value=3), 'Layer.env[0].value is a number; a word is needed: "3"'),
    "deep": (
        Layer(task=(Cmd.of("a", Join("x", None)),)),  # type: ignore[arg-type]
        "Layer.task[0].argv[1].parts[1] is None; a word is needed",
    ),
    "variable": (var(name="A-B"), 'Layer.env[0].name is "A-B", not the name of an environment variable'),
    "why": (var(why=" "), "Layer.env[0].why is blank; say in a few words what A is for"),
    "how": (var(how="set"), "Layer.env[0].how is a string; a How is needed: How.SET"),
    "action": (Layer(modules=(Module("x", "lod"),)), 'Layer.modules[0].action is "lod"; one of load'),
    "scheduler": (
        Layer(ask={"slrum": ("--foo",)}),
        'Layer.ask["slrum"] is for no scheduler that is installed; the nearest is "slurm"',
    ),
    "step name": (Step(name="a b", commands=()), 'Step.name is "a b", not a name'),
    "minutes": (
        Step(name="a", commands=(), minutes=True),
        "Step.minutes is a truth value; a whole number is needed",
    ),
    "need": (
        Step(name="a", commands=(), needs={"gpu"}),  # type: ignore[arg-type]
        "Step.needs[0] is a string; a Need is needed: Need.NETWORK",
    ),
    "needs": (
        Step(name="a", commands=(), needs=Need.GPU),  # type: ignore[arg-type]
        "Step.needs is a Need; a set of Need is needed",
    ),
    "layer": (
        Step(name="a", commands=(), layer=attrs.evolve(RIGHT, binds=("/a",))),  # type: ignore[arg-type]
        "Step.layer.binds[0] is a string; a Bind is needed",
    ),
    "class": (
        Train(argv=("x",), layer=Layer),  # type: ignore[arg-type]
        "Train.layer is the class Layer; a Layer is needed",
    ),
    "job files": (
        JobFiles(files={"a": b"x"}, submit=Cmd.of("x")),  # type: ignore[dict-item]
        'JobFiles.files["a"] is a bytes; a string is needed',
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_where_it_is(what: str) -> None:
    value, said = WRONG[what]
    with pytest.raises(values.WrongValue) as caught:
        values.check(value)
    assert str(caught.value).startswith(said)


def test_the_plugin_the_hook_and_the_line_are_named() -> None:
    @hookimpl
    def configure_network() -> Layer:
        return Layer(ask={"slurm": "--foo"})  # type: ignore[dict-item]

    hooks = Hooks()
    plugin = SimpleNamespace(configure_network=configure_network)
    hooks.add(Entry("clusters", "alps", "x", "hpc-alps", "1.2"), plugin)
    with pytest.raises(PluginError) as caught:
        hooks.call("configure_network", run=None, cluster=None, launch=None)
    (problem,) = caught.value.problems
    assert problem.message.startswith(
        'alps (hpc-alps 1.2): configure_network: Layer.ask["slurm"] is a string; a tuple of words'
    )
    assert problem.span is not None
    assert problem.span.file == __file__


def test_a_wrapper_is_judged_too() -> None:
    @hookimpl
    def launch() -> Launch:
        return Launch()

    @hookimpl(wrapper=True, specname="launch")
    def audit() -> Any:
        return attrs.evolve((yield), prefix="audit")

    hooks = Hooks()
    hooks.add(Entry("clusters", "alps", "x", "hpc-alps", "1"), SimpleNamespace(launch=launch))
    hooks.add(Entry("hooks", "acme", "x", "acme", "1"), SimpleNamespace(launch=audit))
    with pytest.raises(PluginError, match=r'acme \(acme 1\): launch: Launch.prefix .*\("audit",\)'):
        hooks.call("launch", run=None, cluster=None, train=None)


def test_every_annotation_of_every_answer_is_understood() -> None:
    todo = [kind_of(cls) for cls in (*results.MANY.values(), *results.SINGLE.values()) if attrs.has(cls)]
    judged: set[type] = set()
    while todo:
        kind = todo.pop()
        assert kind.form is not Form.FOREIGN, kind
        assert kind.form is not Form.UNION or all(isinstance(part.type, type) for part in kind.parts), kind
        todo += kind.parts
        if kind.form is Form.TABLE and kind.type not in judged:
            judged.add(kind.type)
            todo += [field.kind for field in fields_of(kind.type).values()]
    assert {EnvVar, Join, Cmd, Launch, Pattern, JobFiles} <= judged


@pytest.mark.budget
def test_a_plan_of_values_costs_under_a_millisecond() -> None:
    layer = Layer(env=(VAR,) * 100)
    values.check(layer)
    assert min(_seconds(layer) for _ in range(30)) < 0.001  # the least: other processes share the caches


def _seconds(layer: Layer) -> float:
    start = time.process_time()
    values.check(layer)
    return time.process_time() - start
