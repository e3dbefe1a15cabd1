from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError
from hpctrain.hooks import scan
from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.models import GPT_NEOX, LLAMA, make


def test_every_declared_format_loads_and_says_what_it_can() -> None:
    assert registry.names() == [
        "dcp",
        "deepspeed-universal",
        "deepspeed-zero",
        "hf",
        "hf-sharded",
        "megatron",
        "megatron-legacy",
        "nanotron",
        "neox",
        "peft",
    ]
    writers = {n for n in registry.names() if hasattr(registry.load(n), "plan")}
    assert writers == {"deepspeed-universal", "deepspeed-zero", "hf", "megatron", "nanotron", "neox"}


def test_written_formats_are_recognised(tmp_path: Path) -> None:
    convert(make(tmp_path / "a", GPT_NEOX), "neox", tmp_path / "neox", ConvertOptions())
    convert(make(tmp_path / "b", LLAMA), "nanotron", tmp_path / "nanotron", ConvertOptions())
    for name in ("neox", "nanotron"):
        assert registry.detect(tmp_path / name) == name
    assert registry.detect(tmp_path / "a") == "hf"
    assert registry.detect(tmp_path / "neox/global_step0") == "neox"


def test_two_formats_in_one_folder_must_be_told_apart(tmp_path: Path) -> None:
    both = make(tmp_path / "both", GPT_NEOX)
    (both / "adapter_config.json").write_text("{}")
    (both / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(ConfigError, match="several formats: hf, peft") as caught:
        registry.detect(both)
    assert caught.value.problems[0].hint == "--from hf"


@pytest.mark.parametrize("name", ["onnx", ""])
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    source = make(tmp_path / "source", GPT_NEOX)
    with pytest.raises(ConfigError, match="checkpoint") as caught:
        convert(source, name, tmp_path / "out", ConvertOptions())
    assert "nanotron" in str(caught.value.problems[0])


def test_a_format_that_is_only_read_cannot_be_a_target(tmp_path: Path) -> None:
    source = make(tmp_path / "source", GPT_NEOX)
    with pytest.raises(ConfigError, match="peft can be read but not written"):
        convert(source, "peft", tmp_path / "out", ConvertOptions())


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gone does not exist"):
        convert(tmp_path / "gone", "hf", tmp_path / "out", ConvertOptions())


def test_a_third_party_adds_a_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    info = tmp_path / "site/other-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hpctrain.checkpoints]\nother = other_format\n")
    (tmp_path / "site/other_format.py").write_text(
        "from hpctrain_plugins.checkpoints.formats import hf\n"
        "HPCTRAIN_API = 1\n"
        "def detect(path): return (path / 'other').is_dir()\n"
        "def read(path, options): return hf.read(path / 'other', options)\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    scan.installed.cache_clear()
    request.addfinalizer(scan.installed.cache_clear)
    (tmp_path / "source").mkdir()
    make(tmp_path / "source/other", GPT_NEOX)
    report = convert(tmp_path / "source", "hf", tmp_path / "out", ConvertOptions())
    assert report.source_format == "other"
