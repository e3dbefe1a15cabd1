"""Checkpoints that torch's own FSDP2 and DCP wrote, against torch's own consolidation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Harm, TorchRun, read_safetensors

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def made(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dcp")
    torch_run("dcp_make.py", folder)
    (folder / "want").mkdir()
    (folder / "want.safetensors").rename(folder / "want/want.safetensors")
    return folder


@pytest.mark.parametrize("kind", ["dcp", "dcp/step_17", "plain", "sharded"])
def test_every_byte_equals_torchs_consolidation(made: Path, tmp_path: Path, kind: str) -> None:
    assert registry.detect(made / kind) == ("hf-sharded" if kind == "sharded" else "dcp")
    convert(made / kind, "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
    have, want = read_safetensors(tmp_path / "out"), read_safetensors(made / "want")
    assert {k: (d, a.shape, a.tobytes()) for k, (d, a) in have.items()} == {
        k: (d, a.shape, a.tobytes()) for k, (d, a) in want.items()
    }


def _lost_rank(folder: Path) -> str:
    (folder / "__1_0.distcp").unlink()
    return "__1_0.distcp is missing"


def _cut(folder: Path) -> str:
    file = folder / "__2_0.distcp"
    file.write_bytes(file.read_bytes()[:-900])
    return "__2_0.distcp at .* is not a complete torch file"


def _flip(folder: Path) -> str:
    for file in folder.glob("*.distcp"):
        raw = bytearray(file.read_bytes())
        for at in range(700, len(raw), 97):
            raw[at] ^= 4
        file.write_bytes(raw)
    return "distcp"


def _evil(folder: Path) -> str:
    (folder / ".metadata").write_bytes(b"\x80\x04\x8c\x02os\x8c\x06system\x93.")
    return "names os.system, which no checkpoint needs"


@pytest.mark.parametrize("harm", [_lost_rank, _cut, _flip, _evil], ids=lambda h: h.__name__)
def test_damage_is_named_and_leaves_nothing(made: Path, tmp_path: Path, harm: Harm) -> None:
    shutil.copytree(made / "plain", tmp_path / "plain")
    message = harm(tmp_path / "plain")
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(tmp_path / "plain", "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code == 7
    assert [p.name for p in tmp_path.iterdir()] == ["plain"]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_lost_rank_of_sharded_files_is_named(made: Path, tmp_path: Path, rank: int) -> None:
    shutil.copytree(made / "sharded", tmp_path / "sharded")
    (tmp_path / "sharded/config.json").write_text(json.dumps({"vocab_size": 1003}))
    for file in tmp_path.glob("sharded/*.safetensors"):
        _rename(file)
    next(tmp_path.glob(f"sharded/shard-{rank:05d}-*")).unlink()
    with pytest.raises(HpctrainError, match=r"embed_tokens.weight|norm|out|experts"):
        convert(tmp_path / "sharded", "hf", tmp_path / "out", ConvertOptions())


@pytest.mark.parametrize("rank", [1, 2])
def test_a_lost_last_rank_shows_in_the_shapes_or_is_said(
    torch_run: TorchRun, tmp_path: Path, rank: int
) -> None:
    """A Llama whose sizes its ranks divide evenly, so that no gap shows, in files of torch's own writer."""
    torch_run("sharded_make.py", tmp_path / "made")
    whole = convert(tmp_path / "made", "hf", tmp_path / "whole", ConvertOptions(verify="roundtrip"))
    assert (whole.shapes, [w for w in whole.warnings if "ranks" in w]) == ("configuration", [])
    next(tmp_path.glob(f"made/shard-{rank:05d}-*")).unlink()
    message = "parts of .* are missing" if rank == 1 else "48 rows where the configuration says 96"
    with pytest.raises(HpctrainError, match=message):
        convert(tmp_path / "made", "hf", tmp_path / "out", ConvertOptions())
    if rank == 2:
        (tmp_path / "made/config.json").unlink()
        report = convert(tmp_path / "made", "hf", tmp_path / "out", ConvertOptions(verify="roundtrip"))
        assert report.shapes == "unproven"
        assert any("no file of" in warning and "how many ranks" in warning for warning in report.warnings)


def _rename(file: Path) -> None:
    """The embedding under the name that configurations speak of."""
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length].rstrip().replace(b"embed.weight", b"embed_tokens.weight")
    header += b" " * (-len(header) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])


def test_a_training_goes_on_on_other_ranks_without_a_conversion(torch_run: TorchRun, tmp_path: Path) -> None:
    """What `--ranks` answers is true: torch cuts it anew when it is loaded."""
    asked = {"half": 1, "the same": 2, "double": 4}
    losses = json.loads(torch_run("dcp_resume.py", tmp_path / "run", json.dumps(asked)).splitlines()[-1])
    undisturbed = losses.pop("")
    apart = {
        n: max(abs(a - b) for a, b in zip(own, undisturbed[2:], strict=True)) for n, own in losses.items()
    }
    assert {name: value for name, value in apart.items() if value > 1e-6} == {}
    with pytest.raises(ConfigError, match="cut for the ranks that load them, when they load them"):
        convert(tmp_path / "run/saved", "deepspeed-zero", tmp_path / "out", ConvertOptions(ranks=4))
