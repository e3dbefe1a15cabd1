"""`automodel`: its command, its one file, what is said before the queue, and how its log is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hpctrain.model.run import Asset, Code, Environment, Package, Resources
from hpctrain.model.step import Ranks
from hpctrain.model.words import Cmd, Var
from hpctrain.render import shell
from hpctrain_plugins.trainers import automodel
from hpctrain_plugins.trainers.automodel.rules import RULES
from tests.trainers import plans
from tests.trainers.external import runs
from tests.trainers.external.runs import ASSETS, changed, codes, problems, resolved, spec, train

FILE = "leonardo.yaml"
NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
RECIPE = "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction"
VALIDATION = """
validation_dataset:
  _target_: nemo_automodel.components.datasets.llm.chat_dataset.ChatDataset
  path_or_dataset_id: "{assets.dataset}"
"""
LOG = (  # measured: Automodel 0.7.0 with a CPU shim, behind a progress bar on the same line
    " 95%|###   | 19/20\rstep 19 | epoch 0 | loss 3.0431 | grad_norm 2.4081 | lr 1.00e-06 | mem 0.00 GiB | "
    "tps 2398.80(1199.40/gpu) | num_label_tokens 116"
)
VAL = '[val] name "default" | step 9 | epoch 0 | loss 3.5431 | lr 5.87e-03 | num_label_tokens 1472'


def _run(old: str = "", new: str = "", *, hub: str = NEMOTRON, append: str = "", **fields: Any) -> Any:
    texts = changed(FILE, old, new)
    texts[FILE] += append
    assets = {name: Asset(hub=hub if name == "model" else f"org/{name}") for name in ASSETS if name != "code"}
    return spec(
        automodel, texts=texts, **{"code": None, "assets": assets, "resources": Resources(nodes=1), **fields}
    )


def _fatal(run: Any, gpus: int = 4) -> dict[str, Any]:
    return {p.where: p for p in problems(automodel, run, gpus) if p.fatal}


def test_the_document_only_warns_of_what_it_lacks() -> None:
    found = problems(automodel, _run())
    assert [(p.where, p.fatal) for p in found] == [("optimizer.eps", False), ("recipe", False)]
    assert found[0].hint == "eps: 1.0e-8"


def test_the_command_on_every_node() -> None:
    answer = train(automodel, _run())
    assert answer.ranks is Ranks.PER_NODE
    said = shell.words(answer.argv, plans.BINDING)
    assert said.endswith('-m nemo_automodel.cli.app "${HPC_RUN}"/steps/train/automodel.yaml')
    assert "--nproc-per-node 4" in said
    assert all(var.why for var in answer.layer.env)


def test_a_version_before_04_is_started_by_its_script() -> None:
    script = "examples/llm_finetune/finetune.py"
    run = _run(
        code=Code(git="https://github.com/NVIDIA-NeMo/Automodel", rev="v0.3.0"), options={"program": script}
    )
    answer = train(automodel, run)
    said = shell.words(answer.argv, plans.BINDING)
    assert said.endswith(f'{script} --config "${{HPC_RUN}}"/steps/train/automodel.yaml')
    assert answer.layer.task[-1] == Cmd.of("cd", Var("HPC_SOURCE"))
    assert "recipe" not in resolved(answer, automodel.FILE)
    assert "recipe" not in [p.where for p in problems(automodel, run)]


def test_one_file_with_every_place_of_the_run() -> None:
    values = resolved(train(automodel, _run()), automodel.FILE)
    assert values["recipe"] == {"_target_": RECIPE}
    assert values["checkpoint"]["checkpoint_dir"] == "$HPC_CHECKPOINTS"
    assert values["checkpoint"]["save_consolidated"] is True
    assert values["model"]["pretrained_model_name_or_path"] == "/fs/assets/model-1"
    assert values["optimizer"]["eps"] == 1e-8
    assert values["distributed"]["dp_size"] == "none"


def test_resolving_does_not_change_what_was_read() -> None:
    run = _run()
    first = resolved(train(automodel, run), automodel.FILE)
    assert [p.where for p in problems(automodel, run)] == ["optimizer.eps", "recipe"]
    assert resolved(train(automodel, run), automodel.FILE) == first


def test_words_that_automodel_would_drop() -> None:
    run = _run(
        options={"overrides": ("checkpoint.checkpoint_dir=/x", "--seed", "--step_scheduler.max_steps=20")}
    )
    found = [p for p in problems(automodel, run) if p.code == "automodel-override"]
    assert [(p.message, p.hint) for p in found] == [
        (
            "Automodel silently drops checkpoint.checkpoint_dir=/x: it does not begin with --",
            'overrides = ["--checkpoint.checkpoint_dir=/x"]',
        ),
        ("--seed sets nothing: KEY=VALUE is needed", 'overrides = ["--seed=…"]'),
    ]


def test_overrides_become_values_of_the_one_file() -> None:
    words = ("--step_scheduler.max_steps=20", "--peft.exclude_modules=['*.x']", "--new.key=a: b")
    answer = train(automodel, _run(options={"overrides": words, "settings": {"rng": {"seed": 7}}}))
    values = resolved(answer, automodel.FILE)
    assert values["step_scheduler"]["max_steps"] == 20
    assert values["peft"]["exclude_modules"] == ["*.x"]
    assert values["peft"]["dim"] == 8
    assert values["rng"]["seed"] == 7
    assert values["new"]["key"] in ({"a": "b"}, "a: b")
    assert answer.numbers.steps == 20


@pytest.mark.parametrize(
    ("old", "new", "where", "says", "hint"),
    [
        (
            "global_batch_size: 8",
            "global_batch_size: 6",
            "step_scheduler.global_batch_size",
            "global_batch_size 6 is not a multiple of local_batch_size 1 x 4 model copies",
            "global_batch_size: 8",
        ),
        (
            "local_batch_size: 1",
            "local_batch_size: 4",
            "step_scheduler.global_batch_size",
            "global_batch_size 8 is not a multiple of local_batch_size 4 x 4 model copies",
            "global_batch_size: 16",
        ),
        (
            "tp_size: 1",
            "tp_size: 3",
            "distributed.tp_size",
            "4 GPUs cannot be shared by tp_size 3 x cp_size 1 x pp_size 1",
            "",
        ),
        (
            "dp_size: none",
            "dp_size: 8",
            "distributed.dp_size",
            "dp_size 8 is not 4 GPUs / (tp_size 1 x cp_size 1 x pp_size 1)",
            "dp_size: none",
        ),
        (
            "cp_size: 1",
            "cp_size: 1\n  ep_size: 8",
            "distributed.ep_size",
            "ep_size 8 does not divide dp x cp = 4",
            "",
        ),
        (
            "max_steps: 750",
            "max_steps: 0",
            "step_scheduler.max_steps",
            "max_steps is 0; a whole number above 0 is needed",
            "",
        ),
        (
            "_target_: torch.optim.AdamW",
            "_target_: AdamW",
            "optimizer._target_",
            "_target_ AdamW is not a dotted path to a class or function; it is imported when the file is read",  # noqa: E501
            "_target_: nemo_automodel.components.…",
        ),
        (
            "enabled: true",
            "enabled: true\n  checkpoint_dir: /data/ck",
            "checkpoint.checkpoint_dir",
            "every run of this file would write to /data/ck",
            'checkpoint_dir: "{checkpoints}"',
        ),
        (
            'path_or_dataset_id: "{assets.dataset}"',
            "path_or_dataset_id: org/squad",
            "dataset.path_or_dataset_id",
            "path_or_dataset_id is org/squad, which would be looked up on the hub when the ranks start",
            'path_or_dataset_id: "{assets.dataset}"      and  [assets]\ndataset = { hub = "org/squad" }',
        ),
    ],
)
def test_what_stops_in_the_job_is_said_before(old: str, new: str, where: str, says: str, hint: str) -> None:
    found = _fatal(_run(old, new))
    assert (found[where].message, found[where].hint) == (says, hint)
    assert found[where].span is not None


@pytest.mark.parametrize(
    ("old", "new", "append", "says"),
    [
        (
            "timeout_minutes: 30",
            "timeout_minutes: 1",
            "",
            "reading a large model from a shared disk takes longer",
        ),
        ("ckpt_every_steps: 100", "ckpt_every_steps: 1000", "", "only the end is saved"),
        ("", "", "slurm:\n  nodes: 2\n", "the section slurm would start the run elsewhere"),
        ("  local_batch_size: 1\n", "", "", "local_batch_size is not set"),
    ],
)
def test_what_goes_on_in_silence_is_a_warning(old: str, new: str, append: str, says: str) -> None:
    run = _run(old, new, append=append)
    found = problems(automodel, run)
    assert not codes(found, fatal=True)
    assert any(says in p.message for p in found)
    assert "slurm" not in resolved(train(automodel, run), automodel.FILE)


OUT = 'exclude_modules: ["*.out_proj"]'
ALL = "match_all_linear: true"


@pytest.mark.parametrize(
    ("hub", "new", "warns"),
    [
        (NEMOTRON, ALL, True),
        (NEMOTRON, "use_triton: false", True),  # without a choice it is "*_proj"
        (NEMOTRON, 'exclude_modules: ["*.in_proj"]', True),
        (NEMOTRON, 'target_modules: ["*_proj"]', True),
        (NEMOTRON, 'target_modules: "*_proj"', True),
        (NEMOTRON, 'target_modules: ["*.q_proj"]', False),
        (NEMOTRON, OUT, False),
        ("state-spaces/mamba2-2.7b", ALL, True),
        ("ai21labs/AI21-Jamba-Mini-1.7", ALL, True),
        ("meta-llama/Meta-Llama-3-8B", ALL, False),
        ("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", ALL, False),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", ALL, True),
        ("nvidia/Llama-3.1-Nemotron-70B-Instruct", ALL, False),
    ],
)
def test_adapters_on_mamba_layers(hub: str, new: str, warns: bool) -> None:
    old = f"{OUT}\n  dim: 8\n  alpha: 32\n  use_triton: true" if "use_triton" in new else OUT
    found = [p for p in problems(automodel, _run(old, new, hub=hub)) if p.code == "lora-mamba"]
    assert [p.hint for p in found] == ([OUT] if warns else [])


@pytest.mark.parametrize("more", [ALL, 'target_modules: ["*_proj"]'])
def test_two_choices_of_layers_end_the_run(more: str) -> None:
    """Version 0.7 raises when the adapters are put in, after the model was read on every GPU."""
    found = [p for p in problems(automodel, _run(OUT, f"{OUT}\n  {more}")) if p.code == "trainer-conflict"]
    key = more.partition(":")[0]
    assert [(p.message, p.hint, p.fatal) for p in found] == [
        (f"{key} and exclude_modules are set; Automodel takes only one of them", f"remove {key}", True)
    ]


def test_a_bare_name_chooses_no_layer() -> None:
    found = problems(automodel, _run(OUT, 'target_modules: ["q_proj", "*.v_proj"]'))
    assert [(p.hint, p.fatal) for p in found if p.code == "lora-layer"] == [
        ('target_modules: ["*.q_proj"]', False)
    ]


def test_a_full_fine_tuning_has_no_adapters() -> None:
    text = (runs.DATA / FILE).read_text()
    start, end = text.index("peft:"), text.index("distributed:")
    run = _run(text[start:end], "")
    assert "lora-mamba" not in codes(problems(automodel, run))
    layout = train(automodel, run).checkpoints
    assert layout is not None
    assert layout.format == "hf"


@pytest.mark.parametrize(
    ("hub", "package", "says"),
    [
        (NEMOTRON, "nemo-automodel==0.3.0", True),
        (NEMOTRON, "", True),
        (NEMOTRON, "nemo-automodel==0.7.0", False),
        ("Qwen/Qwen3-8B", "", None),
    ],
)
def test_validation_that_does_not_end(hub: str, package: str, says: bool | None) -> None:
    packages = (Package.parse(package),) if package else ()
    run = _run(hub=hub, append=VALIDATION, environment=Environment(packages=packages))
    found = [p for p in problems(automodel, run) if p.code == "validation-hangs"]
    assert [p.fatal for p in found] == ([] if says is None else [says])
    assert all(p.hint == "remove validation_dataset" and p.span for p in found)


def test_bare_files_of_the_old_version() -> None:
    text = (runs.DATA / FILE).read_text()
    found = list(automodel.check_config({FILE: text}, 4, 1))
    assert [(p.where, p.code) for p in found if p.fatal] == [("recipe", "trainer-missing")]
    assert found[-1].hint == f"recipe:\n  _target_: {RECIPE}"
    named = text + f"recipe: {RECIPE.rpartition('.')[2]}\n"
    assert not [p for p in automodel.check_config({FILE: named}, 4, 1) if p.fatal]


def test_the_numbers_of_the_document() -> None:
    numbers = train(automodel, _run()).numbers
    assert (numbers.tokens_per_step, numbers.steps) == (8 * 4096, 750)
    assert numbers.parameters is None
    assert any(said.startswith("size: no config.json of a family") for said in numbers.leaves_out)
    loose = train(automodel, _run("packed_sequence_size: 4096", "packed_sequence_size: 0")).numbers
    assert loose.tokens_per_step is None


def test_a_tracker_writes_beside_the_run() -> None:
    env = {v.name: v for v in train(automodel, _run(append="wandb:\n  project: x\n")).layer.env}
    assert env["WANDB_MODE"].value == "offline"
    assert "WANDB_MODE" not in {v.name for v in train(automodel, _run()).layer.env}


def test_its_log_is_read() -> None:
    training, validation = train(automodel, _run()).progress
    match = re.search(training.regex, LOG)
    assert match
    assert match.groupdict() == {
        "step": "19",
        "loss": "3.0431",
        "grad_norm": "2.4081",
        "lr": "1.00e-06",
        "tokens_per_s": "2398.80",
    }
    match = re.search(validation.regex, VAL)
    assert match
    assert match.groupdict() == {"step": "9", "eval_loss": "3.5431"}
    assert not re.search(training.regex, VAL)
    assert not re.search(validation.regex, LOG)


def test_its_checkpoints_are_found(tmp_path: Path) -> None:
    from hpctrain_job.resume import newest

    layout = train(automodel, _run()).checkpoints
    assert layout is not None
    for name, whole in (("epoch_0_step_9", True), ("epoch_0_step_99", True), ("epoch_1_step_199", False)):
        (tmp_path / name).mkdir()
        if whole:
            (tmp_path / name / layout.complete).touch()
    (tmp_path / "LATEST").symlink_to("epoch_0_step_99")
    found = newest(tmp_path, layout.name, layout.complete)
    assert found is not None
    assert found.step == 99


FAILURES = {  # measured with 0.7.0 on a CPU, from source, or as the document's authors met them
    "automodel-checkpoint-taken": "AssertionError: Checkpoint directory /x/epoch_0_step_99 already exists",
    "automodel-batch": "global_batch_size (6) must be divisible by local_batch_size * dp_size (1 * 4)",
    "automodel-recipe": "YAML config must specify a recipe target.",
    "automodel-triton": "ValueError: key contains names that are not kernel arguments: S",
    "mamba-missing": "following packages that were not found in your environment: mamba_ssm. Run pip install",
    "mamba-abi": "selective_scan_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c10",
    "automodel-no-gpu": "AttributeError: module 'torch._C' has no attribute '_cuda_resetPeakMemoryStats'",
}


def test_every_failure_has_its_rule_and_no_other() -> None:
    assert {rule.name for rule in RULES} == set(FAILURES)
    for name, text in FAILURES.items():
        assert [rule.name for rule in RULES if re.search(rule.pattern, text)] == [name]
    assert not [rule for rule in RULES if re.search(rule.pattern, LOG + VAL)]
