"""The option names of other converters mean what they meant there."""

from __future__ import annotations

import pytest

from hpctrain_plugins.checkpoints.cli.spellings import ours


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("--merge_lora --model_dir d --output_path o", "d --out o"),
        (
            "--input_dir d --config_file c.yml --output_dir o --precision bf16",
            "d --config c.yml --out o --dtype bf16",
        ),
        ("--input_dir=d --output_dir=o --precision=auto", "d --out o --dtype keep"),
        (
            "--hf-model m --revision r --output-dir o --tp 2 --iteration 7",
            "--to neox --naming te m --revision r --out o --tp 2 --iteration 7",
        ),
        (
            "--hf-model m --output-dir o --no-transformer-engine",
            "--to neox --naming te m --out o --naming legacy",
        ),
        ("d --to hf -o o", "d --to hf -o o"),
        ("d -o o -- --model_dir", "d -o o -- --model_dir"),
        ("--output=o=p d", "--output=o=p d"),
    ],
)
def test_each_spelling(said: str, meant: str) -> None:
    assert ours(said.split()) == meant.split()
