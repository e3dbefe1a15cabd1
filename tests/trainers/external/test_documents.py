"""The run files of the three documents plan on their clusters, with the documents' numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpctrain.cli.commands.check import command
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.cli.show.plan_json import document
from hpctrain.errors import ConfigError, fatal
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output.metrics import metrics_of
from hpctrain.session import Session
from tests.clusters.workspace import installed_workspace
from tests.trainers.external.runs import DATA


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    with installed_workspace(tmp_path_factory.mktemp("site")):
        yield


def _session(name: str, tmp_path: Path) -> Session:
    return Session(DATA / f"{name}.toml", environ={"USER": "ada", "HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("name", "gpus", "tokens", "steps", "kept"),
    [
        ("alps", 8, 65_536, 1500, "nanotron"),
        ("isambard", 32, 1_048_576, 119_209, "neox"),
        ("leonardo", 4, 32_768, 750, "peft"),
    ],
)
def test_a_document_plans(name: str, gpus: int, tokens: int, steps: int, kept: str, tmp_path: Path) -> None:
    plan = _session(name, tmp_path).plan()
    assert fatal(plan.problems) == ()
    train = plan.step_named("train")
    assert train is not None
    assert plan.train is not None
    assert plan.train.checkpoints is not None
    assert train.step.launch.nodes * train.step.launch.gpus_per_node == gpus
    assert (plan.train.numbers.tokens_per_step, plan.train.numbers.steps) == (tokens, steps)
    assert plan.train.checkpoints.format == kept


def test_the_wikitext_of_alps_is_98_million_tokens(tmp_path: Path) -> None:
    numbers = document(_session("alps", tmp_path).plan(), None)["plan"]["numbers"]
    assert numbers["tokens"] == 98_304_000
    assert (numbers["vocabulary"], numbers["vocabulary_padded"]) == (50257, 50260)


def test_the_446_of_isambard_is_hfu_and_334_is_mfu(tmp_path: Path) -> None:
    """Activations are checkpointed in the document's run, so a third of NeoX's figure is done twice."""
    session = _session("isambard", tmp_path)
    assert document(session.plan(), None)["plan"]["numbers"]["hardware"] == pytest.approx(4 / 3)
    (tmp_path / "logs").mkdir()
    (tmp_path / "plan.json").write_text(str(session.files()["plan.json"]))
    (tmp_path / "logs/train.rank0.log").write_text(
        " samples/sec: 145.3 | iteration       10/  119209 | learning rate: 1.875E-06 | "
        "approx flops per GPU: 446.0TFLOPS | lm_loss: 1.087654E+01 |\n"
    )
    (row,) = metrics_of(RunDirectory(tmp_path)).rows
    assert row["tflops_per_gpu"] == 334.5
    assert (row["hfu"], row["mfu"]) == (
        pytest.approx(446 / 989, abs=1e-3),
        pytest.approx(334.5 / 989, abs=1e-3),
    )


@pytest.mark.parametrize("name", ["alps", "isambard", "leonardo"])
def test_the_scripts_hold_the_one_file(name: str, tmp_path: Path) -> None:
    files = _session(name, tmp_path).files()
    job = str(files["steps/train/job.sh"])
    (file,) = [f for f in ("nanotron.yaml", "neox.yml", "automodel.yaml") if f">steps/train/{f}" in job]
    assert 'hpc_json "${HPC_CHECKPOINTS}"' in job
    assert file in str(files["steps/train/task.sh"])


def test_a_place_in_the_users_own_file_is_shown(tmp_path: Path) -> None:
    for name in ("alps.toml", "alps.yaml"):
        (tmp_path / name).write_text((DATA / name).read_text().replace("  dp: 2", "  dp: 3"))
    plan = Session(tmp_path / "alps.toml", environ={"USER": "ada", "HOME": str(tmp_path)}).plan()
    (problem,) = fatal(plan.problems)
    assert problem.span is not None
    assert (problem.span.file, problem.span.line, problem.source) == ("alps.yaml", 11, "trainers:nanotron")


@pytest.mark.parametrize(("name", "repository"), [("alps", "nanotron"), ("isambard", "gpt-neox")])
def test_without_code_the_trainers_own_repository_is_brought(
    name: str, repository: str, tmp_path: Path
) -> None:
    text = (DATA / f"{name}.toml").read_text()
    start, end = text.index("[code]"), text.index("[assets]")
    (tmp_path / "run.toml").write_text(text[:start] + text[end:])
    for file in DATA.glob("*.y*ml"):
        (tmp_path / file.name).write_text(file.read_text())
    plan = Session(tmp_path / "run.toml", environ={"USER": "ada", "HOME": str(tmp_path)}).plan()
    assert fatal(plan.problems) == ()
    code, train = plan.step_named("code"), plan.step_named("train")
    assert code is not None
    assert train is not None
    assert code.step.makes is not None
    assert repository in code.step.makes.inputs["git"]
    assert len(code.step.makes.inputs["commit"]) == 40
    assert "code" in [after.step for after in train.step.after]


@pytest.mark.parametrize("name", ["alps", "isambard", "leonardo"])
def test_the_trainers_own_validator_runs_before_the_gpus_are_asked_for(name: str, tmp_path: Path) -> None:
    trainer = {"alps": "nanotron", "isambard": "neox", "leonardo": "automodel"}[name]
    session = Session(
        DATA / f"{name}.toml",
        sets=[f"train.{trainer}.deep=true"],
        environ={"USER": "ada", "HOME": str(tmp_path)},
    )
    plan = session.plan()
    check, train = plan.step_named("validate"), plan.step_named("train")
    assert check is not None
    assert train is not None
    assert (check.step.inside, check.step.launch.world) == (True, 1)
    assert "validate" in [after.step for after in train.step.after]
    files = session.files()
    said = {path: str(text) for path, text in files.items() if path.startswith("steps/validate/")}
    assert "validate.py" in said["steps/validate/task.sh"]
    assert any(
        name.endswith(("nanotron.yaml", "neox.yml", "automodel.yaml"))
        for name in " ".join(said.values()).split()
    )
    assert _session(name, tmp_path).plan().step_named("validate") is None


def _check(*words: str) -> tuple[int, str, list[str]]:
    """Exit status, what was printed, and the codes that stop."""
    out = Out.of(Flags(json="--json" in words), {})
    arguments = [word for word in words if word != "--json"]
    done = CliRunner().invoke(command, arguments, obj=out, standalone_mode=False)
    if isinstance(done.exception, ConfigError):
        return 2, done.output, [p.code for p in fatal(done.exception.problems)]
    assert done.exception is None
    return int(done.return_value), done.output, []


def test_bare_files_of_a_trainer() -> None:
    files = [str(DATA / name) for name in ("isambard_model.yml", "isambard_run.yml")]
    code, said, _ = _check("--trainer", "neox", "--gpus", "64", *files)
    assert (code, said.splitlines()[-1].endswith(": ok for 64 GPUs")) == (0, True)
    assert _check("--trainer", "neox", "--gpus", "64", files[1])[2] == ["trainer-missing"] * 4
    code, said, _ = _check("--json", "--trainer", "neox", "--gpus", "64", *files)
    document = json.loads(said)
    assert {p["code"] for p in document["problems"]} == {"trainer-path"}
    assert all(p["source"] == "trainers:neox" for p in document["problems"])


def test_nodes_count_where_they_are_said() -> None:
    file = str(DATA / "alps.yaml")
    assert _check("--trainer", "nanotron", "--gpus", "8", "--nodes", "2", file)[2] == ["nanotron-local-rank"]
    assert _check("--trainer", "nanotron", "--gpus", "8", file)[0] == 0
    assert _check("--trainer", "nanotron", "--gpus", "16", file)[2] == ["trainer-world"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--trainer", "trl", "x.yaml"], "usage"),
        (["--trainer", "neox"], "usage"),
        (["--trainer", "nanotrn", "x.yaml"], "no-plugin"),
        (["--trainer", "neox", "not-there.yml"], "no-file"),
        (["--trainer", "neox", str(DATA)], "is-folder"),
        (["--trainer", "nanotron", str(DATA / "alps.yaml"), str(DATA / "leonardo.yaml")], "trainer-conflict"),
        (["--trainer", "nanotron", str(DATA / "verdicts.json")], "trainer-key"),
        (["a.toml", "b.toml"], "usage"),
        (["a.toml", "--gpus", "8"], "usage"),
    ],
)
def test_bad_words_are_one_clear_error(words: list[str], code: str) -> None:
    assert code in _check(*words)[2]
