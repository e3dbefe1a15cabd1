"""`plan --json` of models whose numbers others have published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpctrain.cli.show.plan_json import document
from hpctrain.session import Session
from tests.clusters.workspace import installed_workspace

LLAMA = Path(__file__).parent / "data/llama.toml"
NEMOTRON_3_NANO = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 1856,
    "vocab_size": 131072,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "n_shared_experts": 1,
    "moe_shared_expert_intermediate_size": 3712,
    "max_position_embeddings": 262144,
}


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    with installed_workspace(tmp_path_factory.mktemp("site")):
        yield


def _numbers(tmp_path: Path, **options: Any) -> dict[str, Any]:
    sets = [f"train.trl.{name}={value}" for name, value in options.items()]
    session = Session(LLAMA, sets=sets, environ={"USER": "ada", "HOME": str(tmp_path)})
    found: dict[str, Any] = document(session.plan(), None)["plan"]["numbers"]
    return found


@pytest.mark.parametrize(
    ("method", "causal", "full", "trained"),
    [("sft", 48.25, 51.5, 8_030_261_248), ("lora", 32.17, 34.3, 41_943_040)],
)
def test_llama_3_8b_at_4096(method: str, causal: float, full: float, trained: int, tmp_path: Path) -> None:
    found = _numbers(tmp_path, method=method)
    assert found["flops_causal"] / 1e9 == pytest.approx(causal, abs=0.006)
    assert found["flops_per_token"] / 1e9 == pytest.approx(full, abs=0.06)
    assert (found["parameters"], found["trained"]) == (8_030_261_248, trained)
    assert found["tokens"] == 16 * 4096 * 1000
    assert found["hardware"] == 1.0


def test_the_time_names_its_share_of_the_peak_and_what_it_leaves_out(tmp_path: Path) -> None:
    found = _numbers(tmp_path)
    work = found["flops_per_token"] * found["tokens"]
    assert found["assumed_mfu"] == 0.3
    assert found["seconds"] == pytest.approx(work / (16 * 989e12 * 0.3), rel=0.001)
    for what in ("time: ", "memory: ", "padding: "):
        assert any(said.startswith(what) for said in found["leaves_out"]), what


@pytest.mark.parametrize(("method", "more"), [("sft", 4 / 3), ("lora", 3 / 2)])
def test_recomputed_activations_are_hfu(method: str, more: float, tmp_path: Path) -> None:
    found = _numbers(tmp_path, method=method, activation_checkpointing="true")
    assert found["hardware"] == pytest.approx(more)
    assert found["flops_per_token"] == _numbers(tmp_path, method=method)["flops_per_token"]


@pytest.mark.parametrize(("stage", "gb"), [(0, 128.5), (1, 68.3), (2, 38.1), (3, 8.03)])
def test_memory_of_a_gpu_by_stage(stage: int, gb: float, tmp_path: Path) -> None:
    assert _numbers(tmp_path, zero_stage=stage)["memory_gb"] == pytest.approx(gb, rel=0.01)


def test_memory_of_lora_is_mostly_frozen_weights(tmp_path: Path) -> None:
    assert _numbers(tmp_path, method="lora")["memory_gb"] == pytest.approx(16.73, abs=0.05)
