"""The map of ARCHITECTURE.md is true: each folder imports what its row allows, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.house.sources import ROOT, Import, control_plane, imports, python, tree

ROW = re.compile(r"^\| `(?P<folder>[^`]+)` \|[^|]*\| (?P<may>[^|]+) \|$", re.MULTILINE)
OURS = ("hpctrain", "hpctrain_job", "hpctrain_plugins", "hpctrain_tokens", "hpctrain_trl")
DEPENDENCIES = {"attr", "attrs", "cattr", "cattrs", "click", "pluggy", "yaml", "tomli", "tomllib"}
ONLY_HERE = {
    "subprocess": {"core/hpctrain/run/system/tools.py": "the only way to start a program"},
    "pytest": {"core/hpctrain/testing/": "the kit is a pytest class"},
    "huggingface_hub": {
        "core/hpctrain/defaults/": "the optional extra `hub`",
        "plugins/hpctrain_plugins/checkpoints/hub/": "the same",
    },
    "numpy": {"plugins/hpctrain_plugins/checkpoints/": "the optional extra `convert`"},
    "typing_extensions": {"core/hpctrain/errors.py": "for type checkers alone"},
    "pickle": {"plugins/hpctrain_plugins/checkpoints/containers/unpickle.py": "an allow-list in front of it"},
}
NEVER = {"marshal", "shelve", "dill", "torch", "transformers", "trl", "peft"}
HOMES = ("core", "core/hpctrain", "plugins/hpctrain_plugins", "plugins/hpctrain_plugins/checkpoints")
"""What paths in the text begin at, besides the top."""
IN_RUNS = {"code/job.zip"}
"""Paths of a run directory."""
STARTS = re.compile(r"os\.(system$|popen|exec|spawn|posix_spawn|fork)")


def rows() -> dict[str, set[str]]:
    """Folder of core -> the areas that it may import."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for match in ROW.finditer(text):
        may = set(re.findall(r"`([^`]+)`", match["may"]))
        above = set(found) if "all above" in match["may"] else set()
        found[area(Path(match["folder"]))] = may | above
    return found


def area(path: Path) -> str:
    """`model`, `session` …: what a row of the map calls a part of core; elsewhere the package."""
    inside = path.parts[2:] if path.parts[:2] == ("core", "hpctrain") else path.parts[1:]
    return inside[0].removesuffix(".py") if inside else path.parts[0].rstrip("/")


def owner(name: str) -> str:
    """The area that an import of ours belongs to."""
    parts = name.split(".")
    return parts[1] if parts[0] == "hpctrain" and len(parts) > 1 else parts[0]


CORE = [p for p in python() if p.parts[:2] == ("core", "hpctrain")]


def test_every_path_in_the_text_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+/[\w./]+)`", text)) - IN_RUNS
    homes = (ROOT, *(ROOT / home for home in HOMES))
    assert {name for name in named if not any((home / name).exists() for home in homes)} == set()


def test_the_map_names_every_folder() -> None:
    assert {area(p) for p in CORE} <= set(rows())


def found(paths: Iterable[Path], wrong: Callable[[Path, Import], bool]) -> str:
    """Every import that breaks a rule, one a line; empty when there is none."""
    said = [f"{p}:{i.line} imports {i.name}" for p in paths for i in imports(tree(p)) if wrong(p, i)]
    return "\n".join(said)


def outside(*folders: str) -> list[Path]:
    return [path for path in python() if path.parts[1] in folders]


def test_core_imports_what_the_map_allows() -> None:
    assert not found(CORE, lambda path, i: _ours(i.top) and owner(i.name) not in may(path))


def may(path: Path) -> set[str]:
    """What a file of core may import of ours; the version numbers are everybody's."""
    return {area(path), "versions", *rows()[area(path)]}


def _ours(top: str) -> bool:
    return top in OURS or top.startswith("hpc_")


def test_plugins_know_no_cluster_and_clusters_not_each_other() -> None:
    paths = [path for path in python() if path.parts[0] != "core"]
    assert not found(paths, lambda path, i: i.top.startswith("hpc_") and i.top != path.parts[1])


PUBLIC = ("hpctrain.plugin.", "hpctrain.toolbox.", "hpctrain.command.")
"""What plugins are written with: values and errors, functions, and what only commands need."""


def test_our_plugins_use_the_api_that_others_have() -> None:
    paths = [path for path in python() if path.parts[0] != "core"]
    assert not found(paths, lambda _, i: i.top == "hpctrain" and not i.name.startswith(PUBLIC))


def test_what_travels_to_the_job_is_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "hpctrain_job"}
    assert not found(outside("hpctrain_job"), lambda _, i: i.top not in allowed)


def test_the_trainer_in_the_job_knows_no_control_plane() -> None:
    assert not found(
        outside("hpctrain_tokens", "hpctrain_trl"), lambda _, i: i.top in ("hpctrain", "hpctrain_plugins")
    )


def test_the_control_plane_imports_its_dependencies_only() -> None:
    assert not found(control_plane(), lambda path, i: not _known(path, i.top))


def _known(path: Path, top: str) -> bool:
    if top in NEVER:
        return False
    if top in ONLY_HERE:
        return any(str(path).startswith(place) for place in ONLY_HERE[top])
    return top in DEPENDENCIES or top in sys.stdlib_module_names or _ours(top)


def test_no_program_is_started_behind_the_back_of_tools() -> None:
    others = [path for path in control_plane() if str(path) not in ONLY_HERE["subprocess"]]
    assert not [said for path in others for said in _starts(tree(path), path)]


def _starts(module: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and STARTS.match(ast.unparse(node)):
            yield f"{path}:{node.lineno} {ast.unparse(node)}"


def test_the_rules_see_what_is_wrong() -> None:
    module = ast.parse("import hpc_alps.facts\nfrom hpctrain.run import tools\nimport os\nos.system('x')\n")
    assert [owner(i.name) for i in imports(module)] == ["hpc_alps", "run", "os"]
    assert list(_starts(module, Path("x.py"))) == ["x.py:4 os.system"]
    assert found([Path("core/hpctrain/run/system/tools.py")], lambda _, i: i.top == "subprocess")
    assert "run" not in may(Path("core/hpctrain/plan/fold.py"))
    assert not _known(Path("core/hpctrain/plan/x.py"), "subprocess")
    assert not _known(Path("core/hpctrain/run/system/tools.py"), "torch")
