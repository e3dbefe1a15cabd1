"""Without extras no command breaks: it does its work, or names the package and the extra that brings it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hpctrain.cli.table import COMMANDS
from hpctrain.hooks.packages import lacking
from hpctrain_job.lacking import cure, extra_of
from tests.docs.installed import Install
from tests.docs.installed import install as install
from tests.docs.reader import NEEDS, Reader
from tests.house.sources import control_plane, imports, tree
from tests.house.test_map import DEPENDENCIES, OURS, outside
from tests.packaging.conftest import dist as dist

BARE = ("hpctrain[local]",)
INSTALLED = re.compile(r"error\[no-package\]: .* needs the package (\w+), which is not installed here")
CURE = re.compile(r"help: pip install 'hpctrain\[(\w+)\]'")

RUN = """
name = "small"
cluster = "local"
environment = { use = "ready", ready = { prefix = "/usr" } }
train = { use = "command", command = { argv = ["true"], ranks = "once" } }
"""
ROW = '{"text": "one"}\n'
CHAT = '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
LINES = {
    "clusters": "local",
    "convert": "checkpoint -o new",
    "publish": "checkpoints org/name",
    "data": "count rows.jsonl --tokenizer .",
    "diff": "--on local",
    "exec": "-- true",
    "help": "no-package",
    "init": "run --on local new.toml",
    "completion": "bash",
    "submit": "--wait",
}
"""What is typed behind the name of a command; the run has ended by the time that a command needs one."""

LEFT_OUT = {"demo": "it asks an index", "shell": "needs a terminal", "tunnel": "fetches a program"}
IN_JOBS = {"datasets"}
"""Imported by steps alone, whose environments the run file describes."""

FOR_TYPES = {"typing_extensions"}
"""Imported by type checkers alone."""

ORDER = ("init", "submit")
NAMING = (
    ("data prepare rows.jsonl --tokenizer . --output-prefix x", "tokenizers"),
    ("data check rows.parquet", "pyarrow"),
    ("data check rows.jsonl.zst", "zstandard"),
    ("data count chats.jsonl --tokenizer .", "tokenizers"),
    ("publish checkpoints org/name", "numpy"),
)


@pytest.fixture
def reader(install: Install, tmp_path: Path) -> Reader:
    """Somebody who has the local cluster alone, with files for every command."""
    folder, home = tmp_path / "work", tmp_path / "home"
    (folder / "checkpoint").mkdir(parents=True)
    home.mkdir()
    (folder / "run.toml").write_text(RUN)
    (folder / "checkpoint/config.json").write_text('{"model_type": "llama"}')
    (folder / "checkpoint/model.safetensors").write_bytes(b"\0" * 16)
    (folder / "checkpoints/global_step10").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / "checkpoints/global_step10" / name).write_bytes((folder / "checkpoint" / name).read_bytes())
    (folder / "rows.jsonl").write_text(ROW)
    (folder / "chats.jsonl").write_text(CHAT)
    for name in ("rows.parquet", "rows.jsonl.zst"):
        (folder / name).write_bytes(b"PAR1")
    (folder / "tokenizer.json").write_text("{}")
    typist = Reader(install, folder, home)
    typist.install(BARE)
    return typist


def test_no_command_breaks(reader: Reader) -> None:
    names = [*ORDER, *(name for name in COMMANDS if name not in (*ORDER, *LEFT_OUT))]
    needed = {}
    for name in names:
        code, printed = reader.type(f"hpctrain {name} {LINES.get(name, '')}")
        assert "error[bug]" not in printed, printed
        assert "Traceback" not in printed, printed
        if match := INSTALLED.search(printed):
            assert (code, bool(CURE.search(printed))) == (2, True), printed
            needed[name] = match[1]
    assert set(needed) == set(NEEDS)
    assert all(package in NEEDS[name] for name, package in needed.items())


@pytest.mark.parametrize(("line", "package"), NAMING)
def test_a_command_names_its_package(reader: Reader, line: str, package: str) -> None:
    code, printed = reader.type(f"hpctrain {line}")
    match, cure = INSTALLED.search(printed), CURE.search(printed)
    assert code == 2, printed
    assert match, printed
    assert cure, printed
    assert match[1] == package in NEEDS[line.split()[0]]


def test_the_cure_is_one(reader: Reader) -> None:
    """With the extra that was named the same command gets further: to what is wrong with the checkpoint."""
    line = "hpctrain convert checkpoint -o new"
    match = CURE.search(reader.type(line)[1])
    assert match
    reader.install([f"hpctrain[{match[1]}]"])
    _, printed = reader.type(line)
    assert "error[" in printed
    assert "no-package" not in printed


def test_every_optional_package_has_its_extra() -> None:
    """What the control plane imports and does not depend on, an extra brings: no such import is a bug."""
    hard = {*sys.stdlib_module_names, *DEPENDENCIES, *OURS}
    paths = [*control_plane(), *outside("hpctrain_tokens")]
    tops = {i.top for path in paths for i in imports(tree(path)) if not i.top.startswith("hpc_")} - hard
    assert tops - IN_JOBS >= {"numpy", "huggingface_hub", "tokenizers", "gigatoken"}
    assert not {top for top in tops - IN_JOBS - FOR_TYPES if not extra_of(top)}


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        *(("numpy", "convert"), ("huggingface_hub", "hub"), ("jinja2", "data"), ("orjson", "fast")),
        *(("pytest", "testing"), ("torch", ""), ("attrs", "")),
    ],
)
def test_the_extra_that_brings_least_is_named(package: str, extra: str) -> None:
    assert extra_of(package) == extra
    assert cure(package) == (f"pip install 'hpctrain[{extra}]'" if extra else f"pip install {package}")


def test_a_step_is_told_to_name_it_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPC_STEP", "export")
    assert cure("numpy").startswith('packages = ["numpy"]')


def test_only_what_an_extra_brings_is_the_users_to_install() -> None:
    absent = ModuleNotFoundError("No module named 'numpy.x'", name="numpy.x")
    match = lacking(absent, "convert")
    assert match is not None
    assert match.problems[0].message == "convert needs the package numpy, which is not installed here"
    assert lacking(ModuleNotFoundError("No module named 'attrs'", name="attrs"), "plan") is None
    assert lacking(ValueError("numpy"), "plan") is None
