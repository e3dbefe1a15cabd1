"""The example of every hook is registered and called, with a small run on a real cluster's facts."""

from __future__ import annotations

import inspect
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain import plugin
from hpctrain.defaults import launch as core_launch
from hpctrain.hooks import specs
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.model.job import Event, Job
from hpctrain.model.plan import Survey
from hpctrain.model.run import Asset
from hpctrain.model.train import Layout
from hpctrain.model.words import Loc
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain.testing.subject import binding_of, environ

NAMES = [name for name, hook in vars(specs).items() if hasattr(hook, "hpctrain_spec")]
SILENT = {"check_submit": "few jobs", "job_event": "observers answer nothing"}
"""Examples that have nothing to say about this run."""
RUN = """
name = "small"
cluster = "alps"
resources = { nodes = 2, time = "1h", account = "abc123" }
environment = { ready = { prefix = "/path" } }
train = { use = "command", command = { argv = ["true"] } }
"""
PROGRAMS = {"uv": "trl==0.23.1", "sbatch": "42", "squeue": "42 RUNNING", "scancel": ""}


def example(name: str) -> types.ModuleType:
    """The example as a plugin, with the names of `hpctrain.plugin` and no others."""
    text = (inspect.getdoc(getattr(specs, name)) or "").partition("Example::\n")[2].partition("Since:")[0]
    module = types.ModuleType(f"example_of_{name}")
    vars(module).update({word: getattr(plugin, word) for word in plugin.__all__}, attrs=attrs, HPCTRAIN_API=1)
    exec(compile(textwrap.dedent(text), f"<example of {name}>", "exec"), vars(module))
    return module


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Programs that answer as the real ones do."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, says in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)
    return Tools({"PATH": f"{folder}:{sys.prefix}/bin:/usr/bin:/bin"})  # an environment that is activated


@pytest.mark.parametrize("name", NAMES)
def test_the_example_answers(name: str, tmp_path: Path, tools: Tools) -> None:
    path = tmp_path / "run.toml"
    path.write_text(RUN, encoding="utf-8")
    session = Session(path, environ=environ())
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    plan = session.plan()
    train = plan.step_named("train")
    assert train is not None
    hooks = Hooks()
    if name == "launch":
        hooks.add(Entry("core", name, name, "hpctrain", "1"), core_launch)  # what the example wraps
    hooks.add(Entry("hooks", name, f"example_of_{name}", "docs", "1"), example(name))
    offered: dict[str, Any] = {
        "run": session.run,
        "cluster": session.cluster,
        "pins": (),
        "tools": tools,
        "name": "data",
        "asset": Asset(url="https://example.org/x"),
        "source": "neox",
        "target": "hf",
        "checkpoint": Loc("checkpoints", "newest"),
        "layout": Layout(format="neox"),
        "assets": {"dataset": Loc("assets", "x")},
        "configs": {},
        "train": plan.train,
        "launch": train.step.launch,
        "binds": (),
        "step": train if name == "render_job" else train.step,
        "plan": plan,
        "survey": Survey(is_on_cluster=False),
        "files": {"dataset": empty} if name == "check_files" else {"train.yml": "world_size: 4"},
        "tell": lambda *_: None,
        "gpus": 8,
        "nodes": 2,
        "binding": binding_of(session),
        "job": Job(step="train", directory=str(tmp_path), name="j", argv=("sbatch",)),
        "tag": "t",
        "ids": ("42",),
        "tags": (),
        "account": "abc123",
        "project": False,
        "event": Event(kind="submitted", run="small/1"),
        "environ": {"PBS_JOBID": "7.host", "PBS_NODEFILE": "/etc/hostname"},
    }
    given = {word: offered[word] for word in inspect.signature(getattr(specs, name)).parameters}
    answer = hooks.call(name, **given)
    assert (answer in ((), ((),))) == (name in SILENT), answer
    assert answer is not None
