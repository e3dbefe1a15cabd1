"""What `trl` plans: its command, its one file, its numbers and everything it finds wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from hpctrain.model.run import Environment, Package, Resources
from hpctrain.model.step import Ranks
from hpctrain.model.words import Join, Var
from hpctrain.render import files, shell
from hpctrain_plugins.environments.wheels.options import Options as Wheels
from hpctrain_plugins.trainers import trl, trl_checks
from hpctrain_plugins.trainers.trl import Options
from hpctrain_trl import arguments
from hpctrain_trl.settings import FIELDS, Settings
from tests.trainers import plans
from tests.trainers.conftest import SHAPE

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def _planned(*, gpus: int = 4, resources: Resources | None = None, **options: Any) -> Any:
    more = {"resources": resources} if resources else {}
    run = plans.run("trl", Options(**options), **more)
    return trl.train_command(run, plans.cluster(gpus), plans.ASSETS, {})


def _settings(train: Any) -> dict[str, Any]:
    (file,) = train.layer.files
    found: dict[str, Any] = json.loads(files.text(file, plans.BINDING))
    return found


def _problems(options: Mapping[str, Any], gpus: int = 4, **more: Any) -> dict[str, str]:
    run = plans.run("trl", Options(**options), **more)
    found = trl_checks.problems(Options(**options), run, trl.world_of(run, plans.cluster(gpus)))
    return {f"{p.where}{'' if p.fatal else '?'}": p.message for p in found}


def test_options_are_the_jobs_settings() -> None:
    """One list: the same names, types and defaults, without those that only the plan decides."""
    own = {name for name, field in FIELDS.items() if not field.metadata.get("job_only")}
    assert {a.name for a in attrs.fields(Options)} == own
    assert all(getattr(Options(), name) == getattr(Settings(), name) for name in own)


def test_the_command_names_one_file() -> None:
    train = _planned()
    assert train.argv == (
        *("python", "-m", "hpctrain_trl", "--config"),
        Join(Var("HPC_RUN"), "/steps/train/trl.json"),
    )
    assert [file.path for file in train.layer.files] == ["trl.json"]
    assert train.ranks is Ranks.PER_GPU
    assert train.code == ("hpctrain_trl",)


def test_the_job_reads_what_the_plan_wrote(tmp_path: Any) -> None:
    values = _settings(_planned(method="lora", max_steps=5, eval_dataset="mine/eval.jsonl", config=LLAMA))
    (tmp_path / "trl.json").write_text(json.dumps(values))
    found = arguments.read(["--config", str(tmp_path / "trl.json")])
    assert found.model == "/fs/assets/model-1"
    assert found.train_dataset == "/fs/assets/dataset-2:train"
    assert found.eval_dataset == "/home/ada/data/eval.jsonl"
    assert (found.save_every_s, found.save_total_limit, found.peak_tflops) == (1800, 3, 989.0)
    assert (found.method, found.run_name, found.config) == ("lora", "r", LLAMA)


@pytest.mark.parametrize(
    ("spec", "becomes"),
    [
        ("dataset", "/fs/assets/dataset-2:train"),
        ("dataset:test", "/fs/assets/dataset-2:test"),
        ("demo/train.jsonl", "/fs/assets/demo-3/train.jsonl"),
        ("demo/deep/x.jsonl:train[:5%]", "/fs/assets/demo-3/deep/x.jsonl:train[:5%]"),
        ("mine", "/home/ada/data"),
        ("/abs/x.jsonl", "/abs/x.jsonl"),
    ],
)
def test_assets_become_paths(spec: str, becomes: str) -> None:
    assert _settings(_planned(train_dataset=spec))["train_dataset"] == becomes


def test_ranks_get_torchs_variables() -> None:
    env = {var.name: var.value for var in _planned().layer.env}
    assert env["RANK"] == Var("HPC_RANK")
    assert env["MASTER_PORT"] == Var("HPC_PORT")
    assert env["HF_HUB_OFFLINE"] == "1"
    assert all(var.why for var in _planned(wandb_project="x y", zero_stage=2).layer.env)


def test_torchrun_on_each_node() -> None:
    train = _planned(ranks="per_node")
    assert train.ranks is Ranks.PER_NODE
    text = shell.words(train.argv, plans.BINDING)
    assert '--node-rank "${HPC_NODE_RANK}" --nproc-per-node 4' in text
    assert text.endswith('-m hpctrain_trl --config "${HPC_RUN}"/steps/train/trl.json')
    assert "RANK" not in {var.name for var in train.layer.env}
    assert "--nproc-per-node 2" in shell.words(
        _planned(gpus=0, ranks="per_node", processes_per_node=2).argv, plans.BINDING
    )


@pytest.mark.parametrize(
    ("gpus", "resources", "options", "world"),
    [
        (4, Resources(nodes=2), {}, 8),
        (4, Resources(gpus=6), {}, 6),
        (4, Resources(gpus=1), {}, 1),
        (0, Resources(nodes=2), {}, 2),
        (0, Resources(), {}, 1),
        (0, Resources(nodes=1), {"ranks": "per_node", "processes_per_node": 2}, 2),
    ],
)
def test_how_many_ranks(gpus: int, resources: Resources, options: Any, world: int) -> None:
    run = plans.run("trl", Options(**options), resources=resources)
    assert trl.world_of(run, plans.cluster(gpus)) == world


def test_numbers_of_llama_3_8b() -> None:
    numbers = _planned(config=LLAMA, max_length=4096, method="lora", max_steps=10).numbers
    assert (numbers.parameters, numbers.trained) == (8_030_261_248, 41_943_040)
    assert numbers.tokens_per_step == 8 * 8 * 4096
    assert numbers.flops_per_token / 1e9 == pytest.approx(34.3, abs=0.05)
    assert numbers.memory_gb == pytest.approx(16.06 + 16 * 0.0419, abs=0.01)
    assert any("activations" in said for said in numbers.leaves_out)


@pytest.mark.parametrize(
    ("chosen", "trained"), [(("q_proj", "v_proj"), 6_815_744), (("q_proj", "query"), None), ((), 0)]
)
def test_adapters_on_chosen_layers(chosen: tuple[str, ...], trained: int | None) -> None:
    """PEFT reports 6,815,744 for r = 16 on the queries and values of Llama-3-8B."""
    numbers = _planned(config=LLAMA, method="lora", lora_target_modules=chosen).numbers
    assert numbers.trained == trained


@pytest.mark.parametrize(("stage", "gb"), [(0, 16), (1, 8 + 1), (2, 4 + 0.5 + 1), (3, 2)])
def test_zero_divides_memory(stage: int, gb: float) -> None:
    billion = 8_030_261_248 / 1e9
    numbers = _planned(config=LLAMA, zero_stage=stage).numbers
    assert numbers.memory_gb == pytest.approx(gb * billion, rel=0.001)


def test_without_a_shape_the_numbers_say_so() -> None:
    numbers = _planned().numbers
    assert (numbers.parameters, numbers.memory_gb, numbers.steps) == (None, None, None)
    assert any(said.startswith("size: the model's config.json") for said in numbers.leaves_out)


def test_a_good_run_has_no_problems() -> None:
    assert _problems({}) == {}
    demo = {"from_scratch": True, "config": SHAPE, "tokenizer": "demo", "max_steps": 100, "max_length": 96}
    assert _problems({**demo, "train_dataset": "demo/train.jsonl"}) == {}


@pytest.mark.parametrize(
    ("options", "where", "says"),
    [
        ({"train_dataset": "datset"}, "train.trl.train_dataset", "there is no asset datset"),
        ({"eval_dataset": "org/eval:test"}, "train.trl.eval_dataset", "there is no asset org"),
        ({"max_steps": 5, "num_train_epochs": 1.0}, "train.trl.max_steps", "keep one"),
        ({"config": {"vocab_size": 8}}, "train.trl.config", "no model_type"),
        ({"config": {**SHAPE, "num_key_value_heads": 3}}, "train.trl.config", "not a multiple"),
        (
            {"config": {**LLAMA, "num_attention_heads": 24, "num_key_value_heads": 8}},
            "train.trl.config",
            "cannot be divided among 24 heads",
        ),
        ({"config": SHAPE}, "train.trl.max_length", "longer than the model's 128 positions"),
        ({"from_scratch": True, "config": LLAMA}, "train.trl.tokenizer", "needs the tokenizer"),
    ],
)
def test_problems_are_found(options: Any, where: str, says: str) -> None:
    assert says in _problems(options)[where]


def test_hints_can_be_pasted() -> None:
    run = plans.run("trl")
    found = {
        spec: next(trl_checks.problems(Options(train_dataset=spec), run, 1)).hint
        for spec in ("datset:test", "org/corpus:train")
    }
    assert found["datset:test"] == 'train_dataset = "dataset:test"'
    assert found["org/corpus:train"] == '[assets]\ntrain_dataset = { hub = "org/corpus" }'


def test_zero_on_one_rank_is_only_said() -> None:
    said = _problems({"zero_stage": 3}, gpus=1, resources=Resources(gpus=1))
    assert said == {"train.trl.zero_stage?": "zero_stage divides memory among ranks, and this run has one"}


def test_the_options_own_bounds() -> None:
    with pytest.raises(ValueError, match="max_length"):
        Options(max_length=0)
    with pytest.raises(ValueError, match="warmup_ratio"):
        Options(warmup_ratio=1.5)


def test_progress_reads_the_trainers_lines() -> None:
    (pattern,) = _planned().progress
    line = "step 5/100 | loss 5.825 | lr 0.0012 | grad_norm 2.063 | tokens 3584 | tokens_per_s 9756"
    match = re.search(pattern.regex, line)
    assert match is not None
    assert match.groupdict() == {
        "step": "5",
        "loss": "5.825",
        "lr": "0.0012",
        "grad_norm": "2.063",
        "tokens": "3584",
        "tokens_per_s": "9756",
    }


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "gpu-memory"),
        ("RuntimeError: HIP out of memory. Tried", "gpu-memory"),
        ("ConnectionError: Couldn't reach 'x' on the Hub (OfflineModeIsEnabled)", "hub-offline"),
        ("ValueError: Tokenizer class TokenizersBackend does not exist or", "tokenizer-generation"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "compiler-missing"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cpu-torch"),
    ],
)
def test_rules_know_their_failures(line: str, rule: str) -> None:
    assert [r.name for r in trl.diagnose_rules() if re.search(r.pattern, line)] == [rule]


def _missing(packages: tuple[str, ...], use: str = "venv", options: Any = None, **more: Any) -> str:
    env = Environment(use=use, packages=tuple(map(Package.parse, packages)), options=options, **more)
    chosen = Options(model="model", method="lora", zero_stage=2)
    texts = {"more.txt": "deepspeed>=0.17\n"}
    run = plans.run("trl", chosen, environment=env, texts=texts)
    found = [p for p in trl_checks.problems(chosen, run, 8) if p.code == "trl-packages"]
    assert not any(p.fatal or p.where != "environment.packages" for p in found)
    return " ".join(p.hint for p in found)


def test_packages_that_the_trainer_lacks_are_said() -> None:
    assert _missing(("numpy",)) == 'packages = ["trl", "peft", "deepspeed"]'
    assert _missing(("trlx", "my-peft", "trl-extra")) == 'packages = ["trl", "peft", "deepspeed"]'
    assert _missing(("trl[peft]==0.23.1",)) == 'packages = ["deepspeed"]'
    assert _missing(("TRL", "peft"), requirements="more.txt") == ""
    assert _missing(("trl", "peft"), compile=(Package.parse("deepspeed==0.17.5"),)) == ""


def test_who_else_may_bring_them_is_not_asked() -> None:
    assert _missing(("numpy",), use="ready") == ""
    assert _missing(("numpy",), use="apptainer") == ""
    assert _missing(("numpy",), options=Wheels(system_site=True)) == ""
    assert _missing(("trl", "peft"), options=Wheels(first=("deepspeed==0.17.5",))) == ""
    assert _missing((), compile=(Package(name="mine", path="mine"),)) == ""
