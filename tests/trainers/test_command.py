"""`command`: the user's own words, with places in them, and nothing else changed."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.model.step import Ranks
from hpctrain.model.words import Cmd, Join, Loc, Var
from hpctrain.render import shell
from hpctrain_plugins.trainers import command
from hpctrain_plugins.trainers.command import Options
from tests.trainers import plans


def _planned(code: bool = False, **options: Any) -> Any:
    assets = {**plans.ASSETS, **({"code": Loc("runs", "code")} if code else {})}
    return command.train_command(plans.run("command", Options(**options)), plans.cluster(), assets)


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
    assert [var.name for var in train.layer.env] == ["OMP_NUM_THREADS"]


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
    ("pattern", "says"), [("(", "no regular expression"), (r"loss (?P<loss>\S+)", "no group step")]
)
def test_patterns_are_checked(pattern: str, says: str) -> None:
    assert says in _problems(argv=("x",), metrics=pattern)["train.command.metrics"][0]
    found = _problems(argv=("x",), checkpoints=".", checkpoint_name=pattern)
    assert says in found["train.command.checkpoint_name"][0]
