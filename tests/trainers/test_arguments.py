"""Settings from a file and from flags: strict, and flags win."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_trl import arguments
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import FIELDS, Settings

OLIVIA = """--model Qwen/Qwen3-0.6B --wandb_project olivia_test --run_name test1
--train_dataset NbAiLab/merged_npk_ndla_parallel_paragraphs:train
--eval_dataset NbAiLab/nynorsk_norm_200eval:validation
--train_source_field nb --train_target_field nn --eval_source_field nb --eval_target_field nn_husnorm
--per_device_train_batch_size 8 --per_device_eval_batch_size 8 --learning_rate 2e-5 --warmup_steps 10000
--num_train_epochs 6 --eval_steps 5000 --save_steps 50000 --logging_steps 1000"""


def _file(folder: Path, text: str) -> str:
    path = folder / "trl.json"
    path.write_text(text)
    return str(path)


def test_the_flags_of_olivias_document() -> None:
    found = arguments.read(OLIVIA.split())
    assert found.model == "Qwen/Qwen3-0.6B"
    assert found.eval_target_field == "nn_husnorm"
    assert (found.num_train_epochs, found.warmup_steps, found.max_steps) == (6.0, 10000, 0)


def test_frontiers_settings() -> None:
    """What sft_llama_ds.py sets in code; its scheduler constant, its lists and its own DeepSpeed file."""
    flags = """--method lora --lora_r 8 --lora_alpha 8 --lora_dropout 0.1 --num_train_epochs 1
    --per_device_train_batch_size 1 --gradient_accumulation_steps 1 --save_steps 50 --logging_steps 50
    --learning_rate 4e-5 --weight_decay 0.001 --max_grad_norm 0.3 --warmup_ratio 0.03 --group_by_length
    --lr_scheduler_type constant --report_to tensorboard --text_field text --deepspeed ds_config.json
    --lora_target_modules q_proj,v_proj --dtype bfloat16"""
    found = arguments.read(flags.split())
    assert found.lora_target_modules == ("q_proj", "v_proj")
    assert (found.group_by_length, found.deepspeed, found.lora_r) == (True, "ds_config.json", 8)


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"learning_rate": 1, "max_steps": 5, "lora_target_modules": ["a", "b"]}')
    found = arguments.read(["--config", path, "--max_steps", "7"])
    assert (found.learning_rate, found.max_steps, found.lora_r) == (1.0, 7, Settings().lora_r)
    assert found.lora_target_modules == ("a", "b")


def test_the_file_may_hold_every_setting_of_the_job(tmp_path: Path) -> None:
    here = {name for name, field in FIELDS.items() if not field.metadata.get("plan_only")}
    values = {name: getattr(Settings(), name) for name in here}
    assert arguments.read(["--config", _file(tmp_path, json.dumps(values))]).__dict__ == vars(Settings())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("[1]", "holds no object"),
        ("{", "is not JSON"),
        ('{"leanring_rate": 1}', "there is no setting leanring_rate"),
        ('{"ranks": "per_node"}', "there is no setting ranks"),
        ('{"learning_rate": "1e-5"}', "its type is float"),
        ('{"learning_rate": true}', "its type is float"),
        ('{"learning_rate": NaN}', "a finite number is needed"),
        ('{"learning_rate": -1}', "at least 0"),
        ('{"max_steps": 2.5}', "its type is int"),
        ('{"max_steps": true}', "its type is int"),
        ('{"packing": true}', "its type is str"),
        ('{"packing": "maybe"}', "only 'auto', 'on', 'off' exist"),
        ('{"zero_stage": 4}', "only 0, 1, 2, 3 exist"),
        ('{"compile": "no"}', "its type is bool"),
        ('{"config": []}', "its type is"),
        ('{"lora_target_modules": "all"}', "its type is"),
        ('{"lora_target_modules": [1]}', "its type is"),
        ('{"lora_dropout": 1.5}', "at most 1"),
        ('{"max_steps": 10, "num_train_epochs": 1}', "both set"),
        ('{"max_steps": 10, "warmup_steps": 10}', "never reaches its peak"),
        ('{"warmup_steps": 10, "warmup_ratio": 0.1}', "both set"),
        ('{"train_source_field": "nb"}', "train_target_field is missing"),
        ('{"generate_eval": "exact"}', "generate_eval needs eval_dataset"),
        ('{"method": "lora", "from_scratch": true}', "LoRA adapts trained weights"),
        ('{"max_length": 0}', "at least 1"),
        ('{"fsdp": true, "zero_stage": 3}', "keep one"),
    ],
)
def test_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadConfig) as raised:
        arguments.read(["--config", _file(tmp_path, text)])
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--lr", "1"], "unrecognized arguments"),
        (["--max_steps", "many"], "max_steps"),
        (["--learning", "1"], "unrecognized arguments"),
        (["--config", "missing.json"], "cannot be read"),
        (["--config", "."], "cannot be read"),
    ],
)
def test_wrong_flags(flags: list[str], says: str) -> None:
    with pytest.raises(BadConfig) as raised:
        arguments.read(flags)
    assert says in raised.value.message


def test_a_typo_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(BadConfig) as raised:
        arguments.read(["--config", _file(tmp_path, '{"leanring_rate": 1}')])
    assert raised.value.text == "error[setting]: there is no setting leanring_rate\n  hint: learning_rate"


@pytest.mark.parametrize("name", FIELDS)
def test_every_default_is_within_its_own_bounds(name: str) -> None:
    facts: Any = FIELDS[name].metadata
    default = getattr(Settings(), name)
    assert facts["about"]
    assert "least" not in facts or default >= facts["least"]
    assert "most" not in facts or default <= facts["most"]
