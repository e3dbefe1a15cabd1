"""Does what a page tells its reader to do, in a folder and a home of its own."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from hpctrain import plugin
from hpctrain.cli.app import Commands
from hpctrain.cli.flags import split
from hpctrain.cli.table import COMMANDS
from hpctrain.errors import HpctrainError, fatal
from hpctrain.hooks.load import find, load
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.runfile.facts import load_cluster
from hpctrain.runfile.settings import read_settings
from hpctrain.runfile.toml import loads
from hpctrain.session import Session
from tests.docs.blocks import Block, commands, matches

SMALL = {
    "resources": {"nodes": 1, "time": "1h"},
    "environment": {"ready": {"prefix": "/path/to/your/environment"}},
    "train": {"use": "command", "command": {"argv": ["true"]}},
}
"""The run over which a part of one is laid."""
SECONDS = 120


class Page:
    """One page: its folder, its home, and the names that its Python blocks have defined."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.here, self.home = folder, folder, home
        self.names: dict[str, Any] = {"__name__": "page"}
        self.environ = _environ(folder.parent, home)

    def do(self, block: Block) -> None:
        """Run, plan, load or parse a block; AssertionError says what was not as the page says."""
        name = block.said("file")
        if name:
            (self.here / name).parent.mkdir(parents=True, exist_ok=True)
            (self.here / name).write_text(block.text, encoding="utf-8")
        getattr(self, f"_{block.language}")(block)

    def parse(self, block: Block) -> None:
        """Look at the commands of a block without running any."""
        for command, _ in commands(block.text):
            _parse(block, command)

    def _console(self, block: Block) -> None:
        if block.said("shown") is not None:
            return self.parse(block)
        for command, said in commands(block.text):
            self._run(block, command, said)
        return None

    def _run(self, block: Block, command: str, said: str) -> None:
        line = f"cd {shlex.quote(str(self.here))}\n{command}\ncode=$?\npwd >&3\nexit $code"
        told = self.folder.parent / "pwd"
        with told.open("w") as pwd:
            done = subprocess.run(
                ["bash", "-c", f"exec 3>&{pwd.fileno()}\n{line}"],
                pass_fds=[pwd.fileno()],
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=SECONDS,
            )
        self.here = Path(told.read_text().strip() or self.here)
        failed = "error[" in said
        assert bool(done.returncode) == failed, f"{block.place} $ {command}\n{done.stdout}"
        assert matches(said, done.stdout), f"{block.place} $ {command}\n{done.stdout}\nexpected:\n{said}"

    def _python(self, block: Block) -> None:
        if block.said("file") is not None:
            ast.parse(block.text)
        elif block.said("hook") is not None:
            _register(block)
        else:
            before = Path.cwd()
            os.chdir(self.here)
            try:
                exec(compile(block.text, block.place, "exec"), self.names)
            finally:
                os.chdir(before)

    def _toml(self, block: Block) -> None:
        for word, check in (("run", self._plan), ("part", self._part), ("facts", self._facts)):
            cluster = block.said(word)
            if cluster is not None:
                return check(block, cluster)
        if block.said("settings") is not None:
            path = self._file(block, "settings.toml", block.text)
            assert read_settings({"HPCTRAIN_SETTINGS": str(path)}).document
            return None
        if block.said("plugin") is not None:
            return self._install(loads(block.text)["project"])
        assert block.said("other") is not None, f"{block.place}: run=, part=, facts … is needed"
        loads(block.text)
        return None

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _yaml(self, block: Block) -> None:
        assert block.said("file") is not None, f"{block.place}: which command reads it?"

    def _install(self, project: Mapping[str, Any]) -> None:
        """What `pip install -e .` would: the entry points beside the modules, on the path."""
        info = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        groups = project["entry-points"].items()
        lines = [f"[{group}]\n{name} = {at}\n" for group, rows in groups for name, at in rows.items()]
        (info / "entry_points.txt").write_text("".join(lines))
        self.environ["PYTHONPATH"] = f"{self.folder}:{self.environ['PYTHONPATH']}"

    def _plan(self, block: Block, cluster: str, text: str = "") -> None:
        path = self._file(block, "block.toml", text or block.text)
        session = Session(path, on=cluster, sets=("resources.account=abc123",), environ=self.environ)
        try:
            wrong = fatal(session.plan().problems)
        except HpctrainError as error:
            wrong = error.problems
        assert not wrong, f"{block.place}: {wrong}"

    def _part(self, block: Block, cluster: str) -> None:
        whole = _merged(SMALL, {"name": "part", "cluster": cluster, **loads(block.text)})
        self._plan(block, cluster, toml(whole))

    def _facts(self, block: Block, cluster: str) -> None:
        path = self._file(block, "facts.toml", block.text)
        if cluster:
            folder = Path(str(load(find("clusters", cluster)).__file__)).parent
            assert load_cluster(folder, site=path).name == cluster
        else:
            assert load_cluster(path).name

    def _file(self, block: Block, name: str, text: str) -> Path:
        path = self.here / (block.said("file") or name)
        path.write_text(text, encoding="utf-8")
        return path


def toml(table: Mapping[str, Any]) -> str:
    """Data as TOML, one top key a line."""
    return "".join(f"{json.dumps(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for key, value in above.items():
        inner = found.get(key)
        found[key] = _merged(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return found


def _register(block: Block) -> None:
    """Hooks with names and arguments that exist: pluggy checks them."""
    module = types.ModuleType("page_hooks")
    names = {name: getattr(plugin, name) for name in plugin.__all__}
    module.__dict__.update(names, HPCTRAIN_API=1, attrs=attrs)
    exec(compile(block.text, block.place, "exec"), module.__dict__)
    hooks = Hooks(trace=False, disabled=[])
    hooks.add(Entry("hooks", "page", "page_hooks", "docs", "1"), module)
    assert any(hasattr(value, "hpctrain_impl") for value in vars(module).values()), block.place


def _parse(block: Block, command: str) -> None:
    """A command that is only shown must exist, with these options."""
    words = shlex.split(command, comments=True)
    if "hpctrain" not in words[:1] or len(words) < 2 or words[1].startswith("-"):
        return
    assert words[1] in COMMANDS, f"{block.place}: no command {words[1]}"
    _, rest = split(words[1:])
    group = Commands("hpctrain")
    context = click.Context(group)
    found = group.get_command(context, rest[0])
    assert found is not None
    found.make_context(rest[0], [word for word in rest[1:] if word != "|"], parent=context)


def _environ(folder: Path, home: Path) -> dict[str, str]:
    """A shell of somebody's with `hpctrain` on its path."""
    shims = folder / "bin"
    shims.mkdir(exist_ok=True)
    for name, words in (("hpctrain", "-m hpctrain "), ("python", ""), ("pytest", "-m pytest ")):
        shim = shims / name
        shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
        shim.chmod(0o755)
    return {
        "HOME": str(home),
        "USER": "you",
        "PATH": f"{shims}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "HPCTRAIN_SITE": "/dev",
    }
