"""What a model has beside its weights goes there and back; what a killed conversion left goes away."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.checkpoints.copying.publishing import private_folder
from tests.checkpoints.conftest import Call
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.patience import PATIENCE

WORDS = {"eos_token_id": 77, "bos_token_id": 76, "pad_token_id": 75, "use_cache": False}


@pytest.mark.parametrize("target", ["neox", "nanotron"])
@pytest.mark.parametrize("config", [GPT_NEOX, LLAMA], ids=["gpt_neox", "llama"])
def test_the_tokenizer_and_the_words_of_the_configuration_come_back(
    convert: Call, tmp_path: Path, config: dict[str, Any], target: str
) -> None:
    if (config, target) == (GPT_NEOX, "nanotron"):
        return
    folder = make(tmp_path / "model", {**config, **WORDS})
    (folder / "generation_config.json").write_text('{"eos_token_id": [77, 78]}')
    assert convert("model", "--to", target, "-o", "there")[0] == 0
    code, _, err = convert("there", "-o", "back")
    assert (code, "warning" in err) == (0, False), err
    for name in ("tokenizer.json", "generation_config.json"):
        assert (tmp_path / "back" / name).read_bytes() == (folder / name).read_bytes()
    back = json.loads((tmp_path / "back/config.json").read_text())
    assert {key: back.get(key) for key in WORDS} == WORDS


def test_what_cannot_be_found_again_is_said(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", {**GPT_NEOX, **WORDS})
    convert("model", "--to", "neox", "-o", "there")
    (tmp_path / "there/conversion.json").unlink()
    (tmp_path / "there/tokenizer/tokenizer.json").unlink()
    code, _, err = convert("there", "-o", "back")
    assert code == 0
    assert "the checkpoint has no tokenizer; --tokenizer FOLDER" in err
    assert "GPT-NeoX notes no eos_token_id and bos_token_id" in err


HOLD = """
import sys, time
from pathlib import Path
from hpctrain_plugins.checkpoints.copying.publishing import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def held(out: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process in the middle of a conversion to `out`."""
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_conversion_left_is_removed_and_what_a_living_one_writes_is_not(
    convert: Call, tmp_path: Path
) -> None:
    make(tmp_path / "model", GPT_NEOX)
    process, folder = held(tmp_path / "out")
    try:
        with private_folder(tmp_path / "out.b"):
            pass
        code, _, err = convert("model", "-o", "out", "--json", "--dry-run")
        assert (code, folder.is_dir()) == (0, True)
        code, _, err = convert("model", "-o", "out")
        assert (code, folder.is_dir()) == (0, True)
        assert f"{folder.name} is of a conversion that runs now" in err
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20 * PATIENCE)
    other = tmp_path / f".out.{platform.node()}x.01234567.partial"
    alike = tmp_path / f".out.{platform.node()}.b.01234567.partial"
    for left in (other, alike):
        left.mkdir()
    (tmp_path / "out").rename(tmp_path / "first")
    code, _, err = convert("model", "-o", "out")
    assert (code, folder.exists(), other.is_dir(), alike.is_dir()) == (0, False, True, True)
    assert f"removed {folder.name}, which a killed conversion left" in err
