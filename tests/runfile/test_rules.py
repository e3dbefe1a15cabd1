"""Tables that need one key of several, and values that would mean something else elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.model.run import Package, RunSpec
from hpctrain.runfile.judging.rules import RUN_CHECKS, literal_variables
from hpctrain.runfile.judging.strict import Strict


def messages(**tables: Any) -> list[str]:
    _, faults = Strict(RUN_CHECKS)({"name": "x", "cluster": "y", **tables}, RunSpec)
    return [fault.problem(None).message for fault in faults]


@pytest.mark.parametrize("account", ["../x", "a/b", "a b", "-A", "a\nb", "$(id)", "ä"])
def test_an_account_is_one_plain_name(account: str) -> None:
    (said,) = messages(resources={"account": account})
    assert said.startswith("an account is one plain name, not ")
    assert messages(resources={"account": "EUHPC_D12-3.x"}) == []


@pytest.mark.parametrize(
    "asset",
    [
        {"hub": "meta-llama/Meta-Llama-3-8B", "revision": "main", "files": ["*.json"]},
        {"hub": "gpt2"},
        {"url": "https://x/y", "sha256": "0"},
        {"git": "git@host:x.git", "rev": "main"},
        {"path": "a b/'c'.jsonl"},
        {"command": ["python", "make.py"], "inputs": ["make.py"]},
    ],
)
def test_right_assets(asset: dict[str, Any]) -> None:
    assert messages(assets={"model": asset}) == []


@pytest.mark.parametrize(
    ("asset", "message"),
    [
        ({}, "hub, url, git, path, command or use is missing"),
        ({"hub": "a/b", "url": "https://x"}, "hub and url are both set; keep one"),
        ({"hub": "../b"}, 'hub is "../b"; org/name is needed'),
        ({"hub": "a/$(id)"}, 'hub is "a/$(id)"; org/name is needed'),
        ({"hub": "--help"}, 'hub is "--help"; org/name is needed'),
        ({"url": "file:///etc/passwd"}, 'url is "file:///etc/passwd"; http:// or https:// is needed'),
        ({"git": "-x"}, 'git is "-x", which looks like an option of a command'),
        ({"path": "x", "rev": "1"}, "rev has no effect without git"),
        ({"git": "x", "revision": "1"}, "revision has no effect without hub"),
        ({"hub": "a/b", "sha256": "1"}, "sha256 has no effect without url or path"),
        ({"path": "x", "inputs": ["y"]}, "inputs has no effect without command"),
    ],
)
def test_wrong_assets(asset: dict[str, Any], message: str) -> None:
    assert messages(assets={"model": asset}) == [message]


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ({}, "requirement, path or git is missing"),
        ({"path": "x", "git": "y"}, "path and git are both set; keep one"),
        ({"path": "x", "rev": "1"}, "rev has no effect without git"),
        (
            {"requirement": "--index-url=x"},
            'requirement is "--index-url=x"; a package such as "trl==0.23.1" is needed',
        ),
        ("git+https://x", 'packages[0] is "git+https://x"; a package such as "trl==0.23.1" is needed'),
        ("trl 1", 'packages[0] is "trl 1"; a package such as "trl==0.23.1" is needed'),
    ],
)
def test_wrong_packages(package: Any, message: str) -> None:
    assert messages(environment={"packages": [package]}) == [message]


@pytest.mark.parametrize(
    ("package", "meant"),
    [
        ("torch=2.9.0", '"torch==2.9.0"'),
        ("torch = 2.9.0", '"torch == 2.9.0"'),
        ("torch=>2.0", '"torch>=2.0"'),
        ("torch@2.0", '"torch==2.0"'),
        ("torch 2.0", '"torch==2.0"'),
        ("trl[peft", '"trl[peft]"'),
        ("torch==", ""),
        ("torch==2.9.0 trl", ""),
        ("torch==2.9.0,", ""),
        ("torch>=2.0<3", ""),
        ("torch==2.9.0 --hash=sha256:0", ""),
        ("torch==latest", ""),
        ("torch[a b]", ""),
        ("torch==2.9.0;", ""),
        ('torch==2.9.0; sys_platform = "linux"', ""),
    ],
)
@pytest.mark.parametrize("form", ["text", "table"])
def test_a_requirement_is_read_to_its_end(package: str, meant: str, form: str) -> None:
    said = package if form == "text" else {"name": "mine", "requirement": package}
    run, (fault,) = Strict(RUN_CHECKS)(
        {"name": "x", "cluster": "y", "environment": {"packages": [said]}}, RunSpec
    )
    problem = fault.problem(None)
    assert run is None
    assert (problem.code, problem.fatal) == ("wrong-value", True)
    key = "" if form == "text" or not meant else "requirement = "
    assert problem.hint == key + meant


@pytest.mark.parametrize(
    "package",
    [
        "torch",
        "ruamel.yaml",
        "trl==0.23.1",
        "trl == 0.23.1",
        "trl[peft]==0.23.1",
        "trl[peft, vllm] >=0.20,<0.24, !=0.21.*",
        "torch==2.9.0+rocm6.4",
        "torch~=2.9.0",
        "torch>=2.0a1.dev0",
        "causal-conv1d==1.5.3.post1",
        "torch===2.8.0a0+5228986c39.nv25.6",
        "torch==1!2.0",
        "torch (>=2.0)",
        "tomli; python_version < '3.11'",
        'tomli>=2; (python_version < "3.11" or os_name == "nt") and platform_machine not in "x86_64 arm64"',
        "mylib @ git+https://example.org/mylib@v1.2",
        "mylib @ https://example.org/mylib.whl ; python_version < '3.11'",
    ],
)
def test_a_requirement_that_pip_reads(package: str) -> None:
    assert messages(environment={"packages": [package]}) == []
    requirements = pytest.importorskip("packaging.requirements")
    assert requirements.Requirement(package).name == Package.parse(package).name


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"code": {}}, "git or path is missing"),
        ({"code": {"git": "x", "path": "y"}}, "git and path are both set; keep one"),
        ({"resources": {"nodes": 1, "gpus": 1}}, "nodes and gpus are both set; keep one"),
        ({"env": {"A=B": "x"}}, '"A=B" is not the name of an environment variable'),
        ({"train": {"use": "$(id)"}}, '"$(id)" is not a name'),
        ({"environment": {"use": "../x"}}, '"../x" is not a name'),
        ({"secrets": ["../x"]}, "secrets[0] is not a name"),
        ({"assets": {"a" * 65: {"hub": "x"}}}, f'"{"a" * 65}" is not a name'),
    ],
)
def test_other_tables(tables: dict[str, Any], message: str) -> None:
    assert messages(**tables) == [message]


@pytest.mark.parametrize(
    "value",
    ["$HOME/cache", "${HOME}", "~/cache", "/a:$PATH", "$A:/b", "<your key>", "<my-key>"]
    + ["{checkpoints}/tb", "{run}", "--from={start}", "{assets.model}/x"],
)
def test_a_value_that_only_something_else_would_replace(value: str) -> None:
    (fault,) = literal_variables({"CACHE": value})
    assert (fault.code, fault.path, fault.fatal) == ("env-literal", ("env", "CACHE"), False)
    assert value in fault.message


@pytest.mark.parametrize(
    "value", ["/a/b:c", "a$b", "cost: $5", "<s>", "<|eod|>", "{x}", "a~/b", "$", "${A:-b}"]
)
def test_values_that_programs_read_themselves(value: str) -> None:
    assert list(literal_variables({"PROMPT": value})) == []
