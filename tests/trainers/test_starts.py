"""Where the first attempt starts: what the plan makes of it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from hpctrain.errors import Problem
from hpctrain.model.layer import Bind
from hpctrain.model.plan import Plan
from hpctrain.model.run import Checkpoint, RunSpec
from hpctrain.model.train import Train
from hpctrain.model.words import Cmd, Join, Loc, Var
from hpctrain.render import files
from hpctrain_plugins.trainers import automodel, caches, command, nanotron, neox, trl
from tests.trainers import plans
from tests.trainers.external import runs

START = "/projects/a5k/converted"
YAML = {
    neox: ("isambard_model.yml", "isambard_run.yml"),
    nanotron: ("alps.yaml",),
    automodel: ("leonardo.yaml",),
}


def _run(module: Any, checkpoint: Checkpoint, **options: Any) -> RunSpec:
    return attrs.evolve(runs.spec(module, *YAML[module], options=options), checkpoint=checkpoint)


def _own_lines(answer: Train) -> list[Any]:
    """The lines of the job without those of the caches."""
    return [line for line in answer.layer.job if line not in caches.job(plans.cluster())]


def _choice(answer: Train) -> tuple[Any, ...]:
    """The words of the job's line that chooses."""
    (line,) = _own_lines(answer)
    assert isinstance(line, Cmd)
    return line.argv


@pytest.mark.parametrize("is_own_key", [False, True])
def test_neox_starts_there_once_and_then_reads_its_own_checkpoints_whole(is_own_key: bool) -> None:
    settings: dict[str, Any] = {"finetune": True, "no_load_optim": True}
    settings |= {"load": START} if is_own_key else {}
    run = _run(neox, Checkpoint(start="" if is_own_key else START), settings=settings)
    answer = runs.train(neox, run)
    assert (answer.start, answer.layer.binds) == (START, (Bind(source=START, readonly=True),))
    first = runs.resolved(answer, "first-neox.yml")
    assert (first["load"], first["finetune"], first["no_load_optim"]) == (START, True, True)
    assert first["save"] == "$HPC_CHECKPOINTS"
    goes_on = runs.resolved(answer, "neox.yml")
    assert goes_on["load"] == "$HPC_CHECKPOINTS"
    assert not {"finetune", "no_load_optim", "no_load_rng", "iteration"} & set(goes_on)
    words = _choice(answer)
    assert {START, Var("HPC_CHECKPOINTS"), "--needs=latest", "--last=configs/neox.yml"} <= set(words)
    assert not runs.codes(runs.problems(neox, run), fatal=True)


def test_one_checkpoint_of_neox_is_its_folder_and_iteration() -> None:
    answer = runs.train(neox, _run(neox, Checkpoint(start=f"{START}/global_step500")))
    first = runs.resolved(answer, "first-neox.yml")
    assert (first["load"], first["iteration"]) == (START, 500)
    assert "--needs=global_step500" in _choice(answer)
    assert "iteration" not in runs.resolved(answer, "neox.yml")


def test_what_neox_does_not_save_it_does_not_look_for() -> None:
    settings = {"no_save_optim": True, "no_load_optim": True}
    answer = runs.train(neox, _run(neox, Checkpoint(start=START), settings=settings))
    assert runs.resolved(answer, "neox.yml")["no_load_optim"] is True


def test_the_folder_it_saves_to_is_no_start() -> None:
    """NeoX's own configurations set `load` to `save`: that is going on."""
    answer = runs.train(neox, _run(neox, Checkpoint()))
    assert (answer.start, _own_lines(answer)) == ("", [])
    assert [file.path for file in answer.layer.files] == ["neox.yml", "neox_rank.py"]


@pytest.mark.parametrize("is_own_key", [False, True])
@pytest.mark.parametrize(("start", "needs"), [(START, "latest.txt"), (f"{START}/1500", "model_config.json")])
def test_nanotron_starts_there_once(start: str, needs: str, is_own_key: bool) -> None:
    keys: dict[str, Any] = {"load_optimizer": False}
    keys |= {"resume_checkpoint_path": start} if is_own_key else {}
    checkpoint = Checkpoint(start="" if is_own_key else start)
    answer = runs.train(nanotron, _run(nanotron, checkpoint, settings={"checkpoints": keys}))
    first = runs.resolved(answer, "first-nanotron.yaml")["checkpoints"]
    assert (first["resume_checkpoint_path"], first["load_optimizer"]) == (start, False)
    goes_on = runs.resolved(answer, "nanotron.yaml")["checkpoints"]
    assert goes_on["resume_checkpoint_path"] == "$HPC_CHECKPOINTS"
    assert "load_optimizer" not in goes_on
    assert f"--needs={needs}" in _choice(answer)


@pytest.mark.parametrize("is_own_key", [False, True])
def test_automodel_starts_there_once(is_own_key: bool) -> None:
    settings = {"checkpoint": {"restore_from": START}} if is_own_key else {}
    checkpoint = Checkpoint(start="" if is_own_key else START)
    answer = runs.train(automodel, _run(automodel, checkpoint, settings=settings))
    assert runs.resolved(answer, "first-automodel.yaml")["checkpoint"]["restore_from"] == START
    goes_on = runs.resolved(answer, "automodel.yaml")["checkpoint"]
    assert goes_on["checkpoint_dir"] == "$HPC_CHECKPOINTS"
    assert "restore_from" not in goes_on
    latest = _run(automodel, Checkpoint(), settings={"checkpoint": {"restore_from": "LATEST"}})
    assert runs.train(automodel, latest).start == ""


@pytest.mark.parametrize("module", list(YAML))
def test_a_checkpoint_that_resume_names_is_a_start(module: Any) -> None:
    answer = runs.train(module, _run(module, Checkpoint(resume=START)))
    assert answer.start == START
    assert len(_own_lines(answer)) == 1


def test_places_that_a_start_may_name() -> None:
    places = {
        "{assets.model}": Loc("assets", "model-1"),
        "{assets.model}/below": Join(Loc("assets", "model-1"), "/below"),
        "{checkpoints.sft/3-4f1c9a2e}": Loc("checkpoints", "sft/3-4f1c9a2e"),
    }
    for text, word in places.items():
        run = _run(nanotron, Checkpoint(start=text))
        assert runs.train(nanotron, run).start == word
        assert not [p for p in runs.problems(nanotron, run) if p.code.startswith(("start", "unknown"))]


def _refusals(module: Any, run: RunSpec) -> list[Problem]:
    codes = ("start-conflict", "start-place", "unknown-asset")
    return [problem for problem in runs.problems(module, run) if problem.code in codes]


@pytest.mark.parametrize(
    ("start", "hint"),
    [
        ("converted", 'start = "/…"'),
        ("{checkpoints.sft/../x}", 'start = "/…"'),
        ("sft/3", 'start = "{checkpoints.sft/3-DIGEST}"'),
        ("sft/3-4f1c9a2e", 'start = "{checkpoints.sft/3-4f1c9a2e}"'),
        ("{assets.modle}", "{assets.model}"),
    ],
)
@pytest.mark.parametrize("module", [nanotron, automodel])
def test_what_is_no_place_is_refused(module: Any, start: str, hint: str) -> None:
    (problem,) = _refusals(module, _run(module, Checkpoint(start=start)))
    assert (problem.fatal, problem.where, problem.hint) == (True, "checkpoint.start", hint)


def test_two_starts_are_one_error_with_both_places() -> None:
    text = runs.changed("isambard_run.yml", '"load": "checkpoints"', '"load": "/projects/a5k/old"')
    texts = {"isambard_model.yml": (runs.DATA / "isambard_model.yml").read_text(), **text}
    run = attrs.evolve(runs.spec(neox, texts=texts), checkpoint=Checkpoint(start=START))
    (problem,) = _refusals(neox, run)
    assert (problem.where, problem.hint) == ("checkpoint.start", "remove load at isambard_run.yml:28")
    assert problem.message == (
        f"checkpoint.start is {START}, and load is /projects/a5k/old: the run can start at one of them only"
    )
    equal = attrs.evolve(run, checkpoint=Checkpoint(start="/projects/a5k/old/"))
    assert not _refusals(neox, equal)
    (never,) = _refusals(neox, attrs.evolve(run, checkpoint=Checkpoint(resume="never")))
    assert "isambard_run.yml:28" in never.message


def test_a_start_and_another_word_for_resume() -> None:
    (problem,) = _refusals(nanotron, _run(nanotron, Checkpoint(start=START, resume="never")))
    assert problem.message == f'start is {START}, and resume = "never" contradicts it'


def test_a_relative_load_has_its_line() -> None:
    text = runs.changed("isambard_run.yml", '"load": "checkpoints"', '"load": "converted"')
    texts = {"isambard_model.yml": (runs.DATA / "isambard_model.yml").read_text(), **text}
    (problem,) = _refusals(neox, runs.spec(neox, texts=texts))
    assert (problem.code, problem.hint) == ("start-place", 'load: "/…"')
    assert problem.span
    assert problem.span.line == 28


def test_keys_about_a_start_that_is_none_are_told() -> None:
    (problem,) = _refusals(neox, _run(neox, Checkpoint(), settings={"finetune": True}))
    assert (problem.where, problem.fatal) == ("train.neox.settings.finetune", False)


def _plan(run: RunSpec) -> Plan:
    return Plan(run=run, cluster=plans.cluster(), pins=(), steps=())


def _command(checkpoint: Checkpoint, *argv: str, **options: Any) -> tuple[Train, list[Problem]]:
    run = plans.run("command", command.Options(argv=argv, **options), checkpoint=checkpoint)
    answer = command.train_command(run, plans.cluster(), plans.ASSETS, {})
    return answer, list(command.check_run(run, plans.cluster(), _plan(run)))


def test_a_command_has_a_place_and_a_variable() -> None:
    answer, problems = _command(Checkpoint(start=START), "train", "--load={start}", checkpoints=".")
    assert problems == []
    assert answer.argv == ("train", Join("--load=", Var("HPC_START")))
    assert "HPC_START" in {variable.name for variable in answer.layer.env}
    assert r"--name=checkpoint-(?P<step>\d+)" in _choice(answer)
    _, (unread,) = _command(Checkpoint(start=START), "train")
    assert (unread.code, unread.fatal) == ("start-missing", False)
    _, (without,) = _command(Checkpoint(), "train", "{start}")
    assert (without.code, without.fatal) == ("start-missing", True)


def _trl(checkpoint: Checkpoint, **options: Any) -> tuple[dict[str, Any], list[Problem]]:
    chosen = trl.Options(train_dataset="dataset", **options)
    run = plans.run("trl", chosen, checkpoint=checkpoint)
    answer = trl.train_command(run, plans.cluster(), plans.ASSETS, {})
    (file,) = answer.layer.files
    assert answer.start != ""
    return json.loads(files.text(file, plans.BINDING)), list(trl.check_run(run, plans.cluster(), _plan(run)))


def test_the_start_of_trl_is_its_model() -> None:
    settings, problems = _trl(Checkpoint(start="{checkpoints.sft/3-4f1c9a2e}/checkpoint-50"))
    assert settings["model"] == "/fs/ck/sft/3-4f1c9a2e/checkpoint-50"
    assert [(p.fatal, p.hint) for p in problems if p.code == "start-conflict"] == [
        (False, "remove assets.model")
    ]
    settings, problems = _trl(Checkpoint(start="{assets.model}"), model="model")
    assert settings["model"] == "/fs/assets/model-1"
    assert not [p for p in problems if p.code == "start-conflict"]
    _, problems = _trl(Checkpoint(start=START), model="mine")
    assert [(p.fatal, p.hint) for p in problems if p.code == "start-conflict"] == [
        (True, "remove train.trl.model")
    ]
    _, problems = _trl(Checkpoint(start=START), from_scratch=True)
    assert [p.hint for p in problems if p.code == "start-conflict"] == ["remove from_scratch in [train.trl]"]
