"""What trainers save with their weights is told apart from them, in layouts that torch's own DCP wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats import roots
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import TorchRun, read_safetensors


@pytest.fixture(scope="module")
def made(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roots")
    torch_run("dcp_roots.py", folder)
    return folder


@pytest.mark.torch
@pytest.mark.parametrize(
    "layout", ["torchtitan", "flat", "beside its state", "recipe", "wrapped", "module", "unknown"]
)
@pytest.mark.parametrize("configured", [True, False])
def test_the_weights_alone_are_written(made: Path, tmp_path: Path, layout: str, configured: bool) -> None:
    (tmp_path / "source").mkdir()
    for file in (made / layout).iterdir():
        if configured or file.name != "config.json":
            (tmp_path / "source" / file.name).write_bytes(file.read_bytes())
    convert(tmp_path / "source", "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    have, want = read_safetensors(tmp_path / "out"), read_safetensors(made / "want")
    assert {n: (k, a.tobytes()) for n, (k, a) in have.items()} == {
        n: (k, a.tobytes()) for n, (k, a) in want.items()
    }


@pytest.mark.torch
@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("moments", "the state of an optimizer and no weights"),
        ("flat moments", "the state of an optimizer and no weights"),
        ("two", "several things in it may be the weights: ema.shadow, net"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(made: Path, tmp_path: Path, layout: str, message: str) -> None:
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(made / layout, "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_names_of_other_models_stay_as_they_are() -> None:
    names = ("vision.conv.weight", "language_model.model.embed_tokens.weight", "state.gate.weight")
    assert roots.weights({n: (n,) for n in names}) == {n: n for n in names}


def test_moments_are_never_weights() -> None:
    paths = {"a.w": ("model", "w"), "a.w.exp_avg": ("model", "w.exp_avg")}
    with pytest.raises(HpctrainError, match=r"a.w.exp_avg belongs to an optimizer"):
        roots.weights(paths)
