"""Every file that a model needs comes along or is named; what a link leads to outside does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain_plugins.checkpoints import links
from tests.checkpoints.conftest import Call
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

CODE = {
    "configuration_x.py": "from .shared_x import A\n",
    "modeling_x.py": "from .configuration_x import X\nfrom . import layers_x\n",
    "shared_x.py": "A = 1\n",
    "layers_x.py": "",
    "tokenization_x.py": "",
}
FILES = (
    *("tekken.json", "sentencepiece.bpe.model", "qwen.tiktoken", "preprocessor_config.json"),
    *("processor_config.json", "video_preprocessor_config.json", "LICENSE", "NOTICE.txt"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = {"AutoConfig": "configuration_x.X", "AutoModel": "modeling_x.Y", "AutoOther": "org/repo--far.Z"}
    path = make(tmp_path / "model", {**LLAMA, "auto_map": table})
    tokenizer = {"auto_map": {"AutoTokenizer": ["tokenization_x.T", None]}}
    (path / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    for name, text in CODE.items():
        (path / name).write_text(text)
    for name in FILES:
        (path / name).write_text(name)
    (path / "additional_chat_templates").mkdir()
    (path / "additional_chat_templates/tools.jinja").write_text("{{ x }}")
    (path / "README.md").write_text("a card")
    (path / "training_args.bin").write_text("x")
    (path / "unused.py").write_text("import os\n")
    return path


def test_what_the_model_needs_comes_along_and_the_rest_is_named(
    convert: Call, folder: Path, tmp_path: Path
) -> None:
    code, _, err = convert("model", "-o", "out")
    assert code == 0, err
    for name in (*CODE, *FILES, "tokenizer.json", "additional_chat_templates/tools.jinja"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes(), name
    left = ["README.md", "training_args.bin", "unused.py"]
    assert f"not copied: {', '.join(left)}" in err
    assert json.loads((tmp_path / "out/conversion.json").read_text())["decisions"]["files_left"] == left
    assert not any((tmp_path / "out" / name).exists() for name in left)


def test_code_that_is_named_and_lost_is_said(convert: Call, folder: Path) -> None:
    (folder / "shared_x.py").unlink()
    code, _, err = convert("model", "-o", "out")
    assert code == 0
    assert "names the code shared_x.py in an auto_map and does not hold it" in err


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "generation_config.json", "LICENSE", "config.json", "model.safetensors"]
)
@pytest.mark.parametrize("target", ["hf", "neox"])
def test_a_link_out_of_the_folder_is_refused(convert: Call, tmp_path: Path, name: str, target: str) -> None:
    path = make(tmp_path / "model", GPT_NEOX)
    secret = tmp_path / "secret"
    if (path / name).exists():
        (path / name).rename(secret)
    else:
        secret.write_text("hidden")
    (path / name).symlink_to("../secret")
    code, _, err = convert("model", "--to", target, "-o", "out")
    assert code == 7
    assert "error[checkpoint-unsafe]" in err
    assert f"model/{name} is a link that leads out of its folder" in err
    assert not (tmp_path / "out").exists()


def test_links_within_the_folder_and_to_the_caches_blobs_are_followed(convert: Call, tmp_path: Path) -> None:
    cache = tmp_path / "models--org--name"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "blobs").mkdir()
    path = make(cache / "snapshots/0123", LLAMA)
    for file in list(path.iterdir()):
        file.rename(cache / "blobs" / f"sha-{file.name}")
        file.symlink_to(f"../../blobs/sha-{file.name}")
    (path / "vocab.json").symlink_to("tokenizer.json")
    code, _, err = convert(path, "-o", "out")
    assert code == 0, err
    assert not (tmp_path / "out/tokenizer.json").is_symlink()
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text("0123")
    (path / "LICENSE").symlink_to("../../refs/main")
    assert convert(path, "-o", "second")[0] == 7


def test_a_folder_that_is_itself_a_link_is_the_users_word(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "far", LLAMA)
    (tmp_path / "model").symlink_to("far")
    links.check(tmp_path / "model")
    assert convert("model", "-o", "out")[0] == 0


def test_settings_do_not_lead_to_a_file_that_is_no_tokenizer(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", GPT_NEOX)
    assert convert("model", "--to", "neox", "-o", "neox")[0] == 0
    (tmp_path / "neox/tokenizer/tokenizer.json").unlink()
    (tmp_path / "private.json").write_text('{"auths": {"registry": "secret"}}')
    with (tmp_path / "neox/global_step0/configs/model.yml").open("a") as file:
        file.write(f"vocab_file: {tmp_path / 'private.json'}\n")
    code, _, err = convert("neox", "-o", "back")
    assert code == 0
    assert "the checkpoint has no tokenizer" in err
    assert not (tmp_path / "back/tokenizer.json").exists()
