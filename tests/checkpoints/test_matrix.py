"""Every family in every format that is written: bit-equal there and back, or refused for a named reason.

The table in docs/conversion.md is what these tests found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError
from hpctrain.testing.plugin import UPDATE, updates
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import ROOT, read_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make_family

TARGETS = ("hf", "neox", "nanotron", "megatron")
PAGE = ROOT / "docs/conversion.md"
_TABLE = re.compile(r"(<!-- from the tests: matrix -->\n).*?(<!-- end -->)", re.DOTALL)

_EXPERTS = {"num_experts_per_tok": 2, "num_experts": 4, "num_local_experts": 4, "moe_intermediate_size": 16}
_EXTRAS: dict[str, dict[str, Any]] = {
    "gpt_neox": GPT_NEOX,
    "qwen3": {"head_dim": 16},
    "qwen3_moe": {"head_dim": 16, "norm_topk_prob": True, **_EXPERTS},
    "mixtral": _EXPERTS,
    "olmoe": _EXPERTS,
    "arcee": {"hidden_act": "relu2"},
    **{name: {"head_dim": 16, "hidden_act": "gelu"} for name in ("gemma", "gemma2", "gemma3_text")},
}


def _config(family: str) -> dict[str, Any]:
    return {**LLAMA, **_EXTRAS.get(family, {}), "model_type": family}


def _outcome(family: str, target: str, place: Path) -> str:
    """What comes of the family in the format: bit-equal, or the reason that it is refused for."""
    source = make_family(place / "hf", _config(family))
    try:
        convert(source, target, place / "there", ConvertOptions(verify="roundtrip", fsync=False))
    except ConfigError as error:
        assert not (place / "there").exists()
        return f"refused: {error.problems[0].message}"
    convert(place / "there", "hf", place / "back", ConvertOptions(fsync=False))
    want, have = read_safetensors(source), read_safetensors(place / "back")
    assert {n: a.tobytes() for n, (_, a) in have.items()} == {n: a.tobytes() for n, (_, a) in want.items()}
    return "bit-equal"


def _cells() -> Iterator[tuple[str, str, str]]:
    """Family, format and what the page says of them."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| `(\w+)` \| `(\w+)` \| (.+?) \| `test_cell\[.+\]` \|$", line)
        if match:
            yield match[1], match[2], match[3]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", TARGETS)
def test_cell(target: str, family: str, tmp_path: Path) -> None:
    assert (family, target, _outcome(family, target, tmp_path)) in set(_cells())


def test_the_page_has_every_cell(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    if updates(pytestconfig):
        rows = ["| family | format | what comes of it | test |", "|---|---|---|---|"]
        for family in FAMILIES:
            for target in TARGETS:
                place = tmp_path / family / target
                place.mkdir(parents=True)
                outcome = _outcome(family, target, place)
                rows.append(f"| `{family}` | `{target}` | {outcome} | `test_cell[{target}-{family}]` |")
        text = "\n".join(rows) + "\n"
        page = _TABLE.sub(lambda m: m[1] + text + m[2], PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(page, encoding="utf-8")
    have = [(family, target) for family, target, _ in _cells()]
    want = [(family, target) for family in FAMILIES for target in TARGETS]
    assert have == want, f"if that is right: pytest tests/checkpoints/test_matrix.py {UPDATE}"
