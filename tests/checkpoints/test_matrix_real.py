"""Every format that is read, as its own library saves it, in every format that is written.

The second table in docs/conversion.md is what these tests found. What comes to Hugging Face is loaded by
transformers too, which computes the logits of the model that was saved.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import attrs
import numpy as np
import pytest

from hpctrain.testing.plugin import UPDATE, updates
from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints import matrix
from tests.checkpoints.conftest import HERE, TorchRun
from tests.checkpoints.matrix import EQUAL, LACKS, TARGETS, bits
from tests.checkpoints.models import LLAMA, make
from tests.checkpoints.test_families_real import TABLED
from tests.checkpoints.test_megatron_real import CASES

pytestmark = [pytest.mark.torch, pytest.mark.slow]

_ALL = tuple(FAMILIES)
_TRAINED = ("llama", "gemma2", "mixtral", "qwen3_moe", "gpt_neox")
_MEGATRON = {"llama": "llama-tp2-pp2", "qwen2": "qwen2-pp2", "mixtral": "mixtral-ep2"}
_LEGACY = {
    "llama": "legacy-llama",
    "qwen3": "legacy-qwen3-tp2-pp2",
    "mixtral": "legacy-mixtral-ep2-pp2",
}


@attrs.frozen
class Source:
    """A format that is read: whose code saved it, of which families."""

    saved_by: str
    families: tuple[str, ...]
    truth: str = "hf"
    """The folder beside it that has the same tensors; none where another test compares them."""


SOURCES = {
    "hf": Source("transformers", _ALL),
    "hf-sharded": Source("torch, FSDP2 on two ranks", _ALL),
    "dcp": Source("torch, FSDP2 on two ranks", _ALL),
    "deepspeed-zero": Source("DeepSpeed, ZeRO-2 on two ranks", _TRAINED),
    "deepspeed-universal": Source("DeepSpeed's script", _TRAINED),
    "peft": Source("peft, and merged by it", _ALL, "merged"),
    "megatron": Source("Megatron-Core, tp, pp or ep 2", tuple(_MEGATRON), ""),
    "megatron-legacy": Source("Megatron-LM's files of Megatron-Core's ranks", tuple(_LEGACY), ""),
    "neox": Source("GPT-NeoX's own code, tp 2", ("llama",)),
    "nanotron": Source("nanotron's own code, tp 2", ("llama",)),
}


@pytest.fixture(scope="module")
def made(torch_run: TorchRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SOURCE/FAMILY/ for each, and what it is to be beside it."""
    home = tmp_path_factory.mktemp("matrix")
    plain = {family: TABLED[family] for family in FAMILIES}
    torch_run("matrix_make.py", home, json.dumps(plain))
    torch_run("matrix_zero.py", home, json.dumps(_TRAINED))
    cases = {**_MEGATRON, **{f"legacy {family}": case for family, case in _LEGACY.items()}}
    torch_run("megatron_make.py", home / "ranks", json.dumps({c: CASES[c] for c in cases.values()}))
    for name, families in (("megatron", _MEGATRON), ("megatron-legacy", _LEGACY)):
        for family, case in families.items():
            shutil.move(home / "ranks" / case, home / family / name)
    fixtures = home / "fixtures"
    fixtures.mkdir()
    make(fixtures / "hf", LLAMA)
    _of_trainers(fixtures)
    return home


def _of_trainers(fixtures: Path) -> None:
    """The weights that GPT-NeoX's and nanotron's code cut; the settings beside them are as we write them."""
    options = ConvertOptions(tp=2, layout="sequential", neox_gqa_layout="concat")
    convert(fixtures / "hf", "neox", fixtures / "neox", options)
    for file in (fixtures / "neox").rglob("mp_rank_*_model_states.pt"):
        shutil.copy(HERE / "fixtures/neox-sharded/0" / file.name, file)
    convert(fixtures / "hf", "nanotron", fixtures / "nanotron", ConvertOptions(tp=2, iteration=10))
    with zipfile.ZipFile(HERE / "fixtures/nanotron-saved.zip") as archive:
        archive.extractall(fixtures / "nanotron")
    for name in ("neox", "nanotron"):
        (fixtures / name / "conversion.json").unlink()


def _outcomes(made: Path, source: str, target: str, place: Path) -> dict[str, str]:
    """By family what comes of it."""
    out = {}
    for family in SOURCES[source].families:
        home = made / ("fixtures" if source in ("neox", "nanotron") else family)
        truth, folder = SOURCES[source].truth, place / family
        assert registry.detect(home / source) == source
        if not truth:
            convert(home / source, "hf", folder / "truth", ConvertOptions(fsync=False))
        want = bits(home / truth if truth else folder / "truth")
        out[family] = matrix.outcome(family, home / source, target, folder, want)
    return out


def _cell(outcomes: dict[str, str], notes: list[str]) -> str:
    """The families that come back equal; the reasons of the others are notes."""
    equal = [f"`{family}`" for family, outcome in outcomes.items() if outcome == EQUAL]
    general = (re.sub(rf"^{LACKS}.*", "refused in the table above", outcome) for outcome in outcomes.values())
    reasons = {matrix.cell(outcome, notes, "sources"): None for outcome in general if outcome != EQUAL}
    named = "all" if len(equal) == len(FAMILIES) else ", ".join(equal)
    return "; ".join(part for part in (named, " ".join(reasons)) if part)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", TARGETS)
def test_source(made: Path, source: str, target: str, tmp_path: Path) -> None:
    rows, notes = matrix.read("sources")
    assert _cell(_outcomes(made, source, target, tmp_path), notes) == rows[source][1 + TARGETS.index(target)]


def test_the_page_has_every_source(made: Path, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    if updates(pytestconfig):
        notes: list[str] = []
        rows = []
        for source, what in SOURCES.items():
            cells = [_cell(_outcomes(made, source, t, tmp_path / source / t), notes) for t in TARGETS]
            rows.append([f"`{source}`", what.saved_by, *cells])
        header = ["from", "saved by", *(f"to `{target}`" for target in TARGETS)]
        matrix.written("sources", header, rows, notes)
    rows_by_source, _ = matrix.read("sources")
    assert list(rows_by_source) == list(SOURCES), f"if that is right: pytest tests/checkpoints/ {UPDATE}"
    assert set(SOURCES) == set(registry.names())


def test_transformers_computes_the_same_from_every_source(
    made: Path, torch_run: TorchRun, tmp_path: Path
) -> None:
    tokens = [5, 17, 3, 61, 42]
    asked: dict[str, list[object]] = {}
    for source, what in SOURCES.items():
        for family in what.families if what.truth and source not in ("neox", "nanotron") else ():
            out = tmp_path / source / family
            convert(made / family / source, "hf", out, ConvertOptions(fsync=False))
            asked[f"{source} {family}"] = [str(out), tokens]
            asked[f"{what.truth} {family}"] = [str(made / family / what.truth), tokens]
    logits = json.loads(torch_run("logits_of.py", json.dumps(asked)).splitlines()[-1])
    apart = {
        f"{source} {family}": float(
            np.abs(np.subtract(logits[f"{source} {family}"], logits[f"{what.truth} {family}"])).max()
        )
        for source, what in SOURCES.items()
        for family in what.families
        if f"{source} {family}" in asked
    }
    assert len(apart) >= 80
    assert {name: value for name, value in apart.items() if value} == {}
