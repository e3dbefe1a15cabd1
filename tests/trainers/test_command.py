"""`command`: the user's own words, with places in them, and nothing else changed."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.model.run import Asset
from hpctrain.model.step import Ranks
from hpctrain.model.words import Cmd, Join, Loc, Var
from hpctrain.render import shell
from hpctrain_plugins.trainers import caches, command
from hpctrain_plugins.trainers.command import Options
from tests.trainers import plans


def _planned(code: bool = False, **options: Any) -> Any:
    assets = {**plans.ASSETS, **({"code": Loc("runs", "code")} if code else {})}
    return command.train_command(plans.run("command", Options(**options)), plans.cluster(), assets, {})


def _problems(**options: Any) -> dict[str, tuple[str, str]]:
    run = plans.run("command", Options(**options))
    return {p.where: (p.message, p.hint) for p in command.check_run(run, plans.cluster(), None)}  # type: ignore[arg-type]


def test_words_stay_as_they_are() -> None:
    argv = ("python", "train.py", "--json", '{"a": {}}', "$HOME", "", "a b")
    train = _planned(argv=argv)
    assert train.argv == argv
    assert shell.words(train.argv, plans.BINDING).endswith("'$HOME' '' 'a b'")


def test_places_are_filled_in() -> None:
    train = _planned(argv=("t", "--data={assets.dataset}/x", "{assets.mine}", "{run}/out", "{checkpoints}"))
    assert train.argv == (
        "t",
        Join("--data=", Loc("assets", "dataset-2"), "/x"),
        Join("/home/ada/data"),
        Join(Var("HPC_RUN"), "/out"),
        Join(Var("HPC_CHECKPOINTS")),
    )


def test_a_program_that_starts_its_own_ranks() -> None:
    argv = (
        "torchrun",
        "--nnodes={nodes}",
        "--nproc-per-node={gpus_per_node}",
        "--master-addr={head}",
        "x.py",
    )
    train = _planned(argv=argv, ranks="per_node")
    assert train.ranks is Ranks.PER_NODE
    text = shell.words(train.argv, plans.BINDING)
    assert text == 'torchrun --nnodes="${HPC_NODES}" --nproc-per-node=4 --master-addr="${HPC_HEAD}" x.py'
    assert {var.name for var in train.layer.env} == {
        "OMP_NUM_THREADS",
        *(var.name for var in caches.env(plans.cluster())),
    }


def test_ranks_and_own_code() -> None:
    train = _planned(code=True, argv=("x",))
    assert train.layer.task == (Cmd.of("cd", Loc("runs", "code")),)
    assert {"RANK", "WORLD_SIZE"} <= {var.name for var in train.layer.env}


def test_how_it_is_read() -> None:
    train = _planned(argv=("x",), metrics=r"(?P<step>\d+): (?P<loss>\S+)", checkpoints="out")
    assert train.progress[0].regex == r"(?P<step>\d+): (?P<loss>\S+)"
    assert train.checkpoints.folder == "out"
    assert _planned(argv=("x",)).progress == ()
    assert _planned(argv=("x",)).checkpoints is None


def test_problems_are_found() -> None:
    assert _problems(argv=("x", "{assets.model}")) == {}
    assert _problems()["train.command.argv"][1] == '[train.command]\nargv = ["python", "train.py"]'
    said, hint = _problems(argv=("x", "{assets.modle}"))["train.command.argv"]
    assert (said, hint) == ("there is no asset modle", "{assets.model}")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("{mine}", "{assets.mine}"),
        ("--model={model}/x", "{assets.model}"),
        ("{asset.model}", "{assets.model}"),
        ("{Assets.modle}", "{assets.model}"),
        ("{asset.other}", "{assets.other}"),
        ("{checkpoint}", "{checkpoints}"),
        ("{node}", "{nodes}"),
        ("{gpu_per_node}", "{gpus_per_node}"),
        ("{RUN}", "{run}"),
    ],
)
def test_a_misspelt_place_is_said(word: str, meant: str) -> None:
    options = Options(argv=("x", word, word))
    (problem,) = command.check_run(plans.run("command", options), plans.cluster(), None)  # type: ignore[arg-type]
    assert (problem.code, problem.fatal, problem.where) == ("command-place", False, "train.command.argv")
    assert problem.hint == meant


@pytest.mark.parametrize(
    "word",
    [
        *('{"model": 1}', "{model,dataset}", "${model}", "{}", "{0}", "{ model }", "{x!r}", "{step:03d}"),
        *("{print $1}", "{print}", "{rank}", "{loss}", "{model: 1}", "f{'node'}", "{run}", "{assets.mine}"),
    ],
)
def test_other_braces_are_nobody_s_business(word: str) -> None:
    assert _problems(argv=("x", word)) == {}


def test_a_name_with_a_dot_is_filled_in() -> None:
    run = plans.run("command", Options(argv=("{assets.v1.2}",)), assets={"v1.2": Asset(path="/v")})
    train = command.train_command(run, plans.cluster(), {"v1.2": "/v"}, {})
    assert train.argv == (Join("/v"),)


@pytest.mark.parametrize(
    ("pattern", "says"), [("(", "not a regular expression"), (r"loss (?P<loss>\S+)", "no group step")]
)
def test_patterns_are_checked(pattern: str, says: str) -> None:
    assert says in _problems(argv=("x",), metrics=pattern)["train.command.metrics"][0]
    found = _problems(argv=("x",), checkpoints=".", checkpoint_name=pattern)
    assert says in found["train.command.checkpoint_name"][0]
