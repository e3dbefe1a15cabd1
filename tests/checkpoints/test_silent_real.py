"""Conversions that once gave another model and said "verified", from files of the real libraries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun

pytestmark = pytest.mark.torch

UNMERGED = {
    "alora": "alora_invocation_tokens is set",
    "dora": "use_dora is set",
    "bias": "lora_bias is set",
    "pissa": "init_lora_weights pissa changed the base too",
    "tokens": "trainable_token_indices is set",
    "replicated": "layer_replication is set",
    "ia3": "adapters of type IA3",
    "loha": "adapters of type LOHA",
    "boft": "adapters of type BOFT",
}


@pytest.fixture(scope="module")
def models(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("silent")
    torch_run("silent_make.py", "make", folder)
    return folder


@pytest.mark.parametrize("name", UNMERGED)
def test_an_adapter_that_no_merge_equals_is_refused_by_name(models: Path, tmp_path: Path, name: str) -> None:
    options = ConvertOptions(base=models / "base")
    with pytest.raises(ConfigError, match=UNMERGED[name]):
        convert(models / f"adapter-{name}", "hf", tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["neox", "nanotron"])
def test_scaled_rotary_embeddings_as_transformers_writes_them(
    models: Path, tmp_path: Path, target: str
) -> None:
    with pytest.raises(ConfigError, match="cannot scale rotary embeddings"):
        convert(models / "rope", target, tmp_path / "out", ConvertOptions())
    config = json.loads((models / "rope/config.json").read_text())
    scaling = {**config.pop("rope_parameters")}
    config |= {"rope_theta": scaling.pop("rope_theta"), "rope_scaling": scaling}  # as version 4 writes it
    shutil.copytree(models / "rope", tmp_path / "earlier")
    (tmp_path / "earlier/config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="cannot scale rotary embeddings"):
        convert(tmp_path / "earlier", target, tmp_path / "out", ConvertOptions())


def test_what_comes_back_computes_the_same_in_transformers(
    models: Path, torch_run: TorchRun, tmp_path: Path
) -> None:
    """GPT-NeoX loses its settings and its record; remote code, which doubles the logits, comes along."""
    convert(models / "neox", "neox", tmp_path / "neox", ConvertOptions())
    shutil.move(tmp_path / "neox/global_step0/configs", tmp_path / "configs")
    (tmp_path / "neox/conversion.json").unlink()
    for config in (None, models / "neox/config.json"):
        with pytest.raises(ConfigError, match=r"no settings of its run|configuration of Hugging Face"):
            convert(tmp_path / "neox", "hf", tmp_path / "refused", ConvertOptions(config=config))
    convert(tmp_path / "neox", "hf", models / "out/neox", ConvertOptions(config=tmp_path / "configs"))
    report = convert(models / "remote", "hf", models / "out/remote", ConvertOptions(verify="roundtrip"))
    assert report.shapes == "unproven"  # of a family of its own
    assert json.loads(torch_run("silent_make.py", "errors", models)) == {"neox": 0.0, "remote": 0.0}
