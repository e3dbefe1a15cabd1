"""What `lock` refuses without asking anybody, `check` refuses too, with the line of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain_plugins.environments import uv
from tests.defaults.rig import cluster

LINES = "# ours\nsix==1.17.0 --hash=sha256:00\n--index-url=https://me:c4nary@x/simple\ntorch=2.9\nfoo @ https://x/f.whl\n"


def spec(
    texts: str = "", packages: tuple[str, ...] = (), python: str = "3.11", program: str = "", **options: Any
) -> RunSpec:
    env = Environment(
        use="uv",
        python=python,
        requirements="list.txt" if texts else "",
        packages=tuple(Package(requirement=text) for text in packages),
        options=uv.Options(python=program, **options),
    )
    return RunSpec(name="r", cluster="toy", environment=env, texts={"list.txt": texts} if texts else {})


@pytest.mark.parametrize(
    ("run", "codes"),
    [
        (spec(LINES), ["requirements-option", "requirement", "requirement-address"]),
        (spec(packages=("six", "bar @ https://x/bar.whl")), ["requirement-address"]),
        (spec(packages=("six",), index_url="ftp://x/simple"), ["index-url"]),
        (spec(packages=("six",), index_url="x/simple"), ["index-url"]),
        (spec(packages=("six",), first_index="https://x:99999/simple"), ["index-url"]),
        (spec(packages=("six",), python=""), ["no-python"]),
        (spec(packages=("six",), program="3.11"), ["python-version"]),
        (spec("six\n", packages=("rich>=13; python_version>'3'",), index_url="file:///a"), []),
    ],
)
def test_check_and_lock_refuse_the_same(run: RunSpec, codes: list[str], tmp_path: Path) -> None:
    far = cluster(arch="aarch64")
    from hpctrain_plugins.environments.wheels import refused

    problems = refused.problems(run, far)
    assert [p.code for p in problems] == codes
    assert all(p.hint and p.where for p in problems)
    if codes:
        with pytest.raises(ConfigError) as caught:
            uv.pin(run=run, cluster=far, tools=Tools(environ={"PATH": str(tmp_path)}))
        assert list(caught.value.problems) == problems


def test_the_lines_are_those_of_the_file_and_the_table_is_the_technologys() -> None:
    from hpctrain_plugins.environments.wheels import refused

    problems = refused.problems(spec(LINES), cluster())
    places = [(p.span.file, p.span.line) for p in problems if p.span]
    assert places == [("list.txt", 3), ("list.txt", 4), ("list.txt", 5)]
    assert problems[0].hint.startswith("[environment.uv]\nindex_url")
    assert problems[1].hint == "torch==2.9"
    assert "c4nary" not in repr(problems)


def test_a_line_that_goes_on_counts_from_its_beginning() -> None:
    from hpctrain_plugins.environments.wheels import refused

    (problem,) = refused.problems(spec("six \\\n  >=1\n\nfoo \\\n@ https://x/f.whl\n"), cluster())
    assert problem.span is not None
    assert (problem.span.line, problem.span.text) == (4, "foo \\")


def test_the_plan_names_the_place_in_the_run_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'name = "r"\ncluster = "local"\n[environment]\nuse = "uv"\npackages = ["six",\n  "foo @ https://x/f.whl"]\n'
        '[train]\nuse = "command"\n[train.command]\nargv = ["true"]\n'
    )
    (problem,) = (p for p in Session(path).plan().problems if p.code == "requirement-address")
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (6, 3)
