"""A checkpoint that is not of this run is refused before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpctrain_trl import resuming
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import Settings

SHAPE = {"model_type": "qwen3", "hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 10}
MODEL = SimpleNamespace(config=SimpleNamespace(**SHAPE))


def _checkpoint(folder: Path, step: int, zero_ranks: int = 0, **config: Any) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({**SHAPE, **config}))
    (path / "trainer_state.json").write_text("{}")
    for rank in range(zero_ranks):
        (path / f"global_step{step}").mkdir(exist_ok=True)
        (path / f"global_step{step}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").touch()
    return path


def _start(folder: Path, resume: str, world: int = 1, **settings: Any) -> Path | None:
    return resuming.start(Settings(resume=resume, **settings), folder, MODEL, Ranks(0, 0, world))


def test_auto_takes_the_newest_or_starts_fresh(tmp_path: Path) -> None:
    assert _start(tmp_path, "auto") is None
    _checkpoint(tmp_path, 5)
    newest = _checkpoint(tmp_path, 10)
    assert _start(tmp_path, "auto") == newest
    assert _start(tmp_path, "never") is None


def test_a_named_checkpoint_or_its_folder(tmp_path: Path) -> None:
    older = _checkpoint(tmp_path, 5)
    newest = _checkpoint(tmp_path, 10)
    run = tmp_path / "run"
    assert _start(run, str(older)) == older
    assert _start(run, str(tmp_path)) == newest


def test_a_named_checkpoint_serves_the_first_attempt_alone(tmp_path: Path) -> None:
    named = _checkpoint(tmp_path / "earlier", 50)
    run = tmp_path / "run"
    assert _start(run, str(named)) == named
    newest = _checkpoint(run, 60)
    assert _start(run, str(named)) == newest


@pytest.mark.parametrize(
    ("checkpoint", "settings", "world", "says"),
    [
        ({"hidden_size": 16}, {}, 1, "its hidden_size is 16, not 8"),
        ({"vocab_size": 11}, {}, 1, "its vocab_size is 11, not 10"),
        ({"r": 8}, {"method": "lora", "lora_r": 16}, 1, "its r is 8, not 16"),
        ({"zero_ranks": 2}, {}, 4, "saved by 2 ranks, and ZeRO cannot go on with 4"),
    ],
)
def test_another_run_is_refused(
    tmp_path: Path, checkpoint: dict[str, Any], settings: dict[str, Any], world: int, says: str
) -> None:
    _checkpoint(tmp_path, 5, **checkpoint)
    with pytest.raises(BadConfig) as raised:
        _start(tmp_path, "auto", world, **settings)
    assert says in raised.value.message


def test_the_way_on_with_other_ranks_is_a_line_to_type(tmp_path: Path) -> None:
    path = _checkpoint(tmp_path / "sft", 5, zero_ranks=2)
    with pytest.raises(BadConfig) as raised:
        _start(tmp_path / "sft", "auto", 4)
    wider = f"{tmp_path}/sft-4-ranks/checkpoint-5"
    assert f"hpctrain convert {path} --ranks 4 -o {wider}, then" in raised.value.hint
    assert f'[checkpoint] resume = "{wider}"' in raised.value.hint
    assert raised.value.hint.endswith("or [resources] gpus = 2")


def test_never_silently_from_zero(tmp_path: Path) -> None:
    """Every checkpoint is damaged, or the named one is none: an error, not a fresh start."""
    path = _checkpoint(tmp_path, 5)
    (path / "MANIFEST").write_text("# hpctrain manifest 1\n1 " + "0" * 64 + "  config.json\n")
    with pytest.raises(BadConfig, match="is whole"):
        _start(tmp_path, "auto")
    with pytest.raises(BadConfig, match="is damaged: config"):
        _start(tmp_path / "run", str(path))
    with pytest.raises(BadConfig, match="not a complete checkpoint"):
        _start(tmp_path / "run", str(tmp_path / "checkpoint-7"))
