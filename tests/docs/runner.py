"""Does what a page tells its reader to do, in a folder and a home of its own."""

from __future__ import annotations

import ast
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from hpctrain import plugin
from hpctrain.hooks.load import find, load
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.runfile.facts import load_cluster
from hpctrain.runfile.layers.settings import read_settings
from hpctrain.runfile.reading.toml import loads
from tests.docs.blocks import Block, commands, matches
from tests.docs.reader import Reader
from tests.house.sources import ROOT

SMALL = {
    "resources": {"nodes": 1, "time": "1h"},
    "environment": {"ready": {"prefix": "/path/to/your/environment"}},
    "train": {"use": "command", "command": {"argv": ["true"]}},
}
"""The run over which a part of one is laid."""


class Page:
    """One page: who reads it, and the program that its Python blocks are together."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader, self.folder = reader, folder
        self.script = ""

    def do(self, block: Block) -> None:
        """Run, plan, load or parse a block; AssertionError says what was not as the page says."""
        name = block.said("file")
        if name:
            (self.reader.cwd / name).parent.mkdir(parents=True, exist_ok=True)
            (self.reader.cwd / name).write_text(block.text, encoding="utf-8")
        getattr(self, f"_{block.language}")(block)

    def _console(self, block: Block) -> None:
        if block.said("shown") is not None:
            self.reader.look_at((command for command, _ in commands(block.text)), block.place)
            return
        for command, expected in commands(block.text):
            code, printed = self.reader.type(command)
            failed = "error[" in expected
            assert bool(code) == failed, f"{block.place} $ {command}\n{printed}"
            assert matches(expected, printed), f"{block.place} $ {command}\n{printed}\nexpected:\n{expected}"

    def _python(self, block: Block) -> None:
        if block.said("file") is not None:
            ast.parse(block.text)
        elif block.said("hook") is not None:
            _register(block)
        else:
            self.script += block.text
            path = self.folder.parent / "page.py"
            path.write_text(self.script, encoding="utf-8")
            code, printed = self.reader.type(f"python {path}")
            assert code == 0, f"{block.place}:\n{printed}"

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
        if not block.words and block.page.parent.name.startswith("hpc_"):
            return _example(block)
        assert block.said("other") is not None, f"{block.place}: run=, part=, facts … is needed"
        loads(block.text)
        return None

    def _json(self, block: Block) -> None:
        if not block.words and block.page.parent.name.startswith("hpc_"):
            return _example(block)
        json.loads(block.text)
        return None

    def _yaml(self, block: Block) -> None:
        if not block.words and block.page.parent.name.startswith("hpc_"):
            return _example(block)
        assert block.said("file") is not None, f"{block.place}: which command reads it?"
        return None

    def _install(self, project: Mapping[str, Any]) -> None:
        """What `pip install -e .` would: the entry points beside the modules, on the path."""
        info = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        groups = project["entry-points"].items()
        lines = [f"[{group}]\n{name} = {at}\n" for group, rows in groups for name, at in rows.items()]
        (info / "entry_points.txt").write_text("".join(lines))
        self.reader.environ["PYTHONPATH"] = str(self.folder)

    def _plan(self, block: Block, cluster: str, text: str = "") -> None:
        path = self._file(block, "block.toml", text or block.text)
        code, printed = self.reader.type(f"hpctrain plan {path} --on {cluster} --account abc123")
        assert code == 0, f"{block.place}:\n{printed}"

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
        path = self.reader.cwd / (block.said("file") or name)
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


def _example(block: Block) -> None:
    """An example that its cluster brings, word by word."""
    files = (ROOT / block.page.parent).glob("hpc_*/examples/*")
    assert any(block.text.strip() == f.read_text("utf-8").strip() for f in files if f.is_file()), (
        f"{block.place}: no file in examples/ is this one"
    )


def _register(block: Block) -> None:
    """Hooks with names and arguments that exist: pluggy checks them."""
    module = types.ModuleType("page_hooks")
    names = {name: getattr(plugin, name) for name in plugin.__all__}
    module.__dict__.update(names, HPCTRAIN_API=1, attrs=attrs)
    exec(compile(block.text, block.place, "exec"), module.__dict__)
    hooks = Hooks(trace=False, disabled=[])
    hooks.add(Entry("hooks", "page", "page_hooks", "docs", "1"), module)
    assert any(hasattr(value, "hpctrain_impl") for value in vars(module).values()), block.place
