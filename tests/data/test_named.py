"""Tokenizers by the names that a project gives them, in run files and on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError
from hpctrain.model.run import Asset
from hpctrain_plugins.data import named, tokens
from hpctrain_plugins.data.command import command
from tests.data import reference
from tests.trainers.plans import cluster

CHAT = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
KNOWN = {
    "base": "/projects/p/neox/tokenizer.json",
    "instruct": {"path": "/projects/p/instruct", "template": "/projects/p/chat.jinja"},
}


def argv(facts: Any, **options: str) -> list[str]:
    """The options of an asset's command on a cluster with these names."""
    made = attrs.evolve(cluster(), facts={"tokenizers": facts})
    asset = Asset(use="tokens", options={"inputs": ["/data/a.jsonl"], **options})
    steps = tokens.prepare_data("set", asset, made, {"mine": "/assets/mine"})
    assert steps is not None
    return [str(word) for word in steps[0].commands[0].argv[11:]]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tokenizer": "base"}, ["--tokenizer", "/projects/p/neox/tokenizer.json"]),
        (
            {"tokenizer": "instruct"},
            ["--chat-template", "/projects/p/chat.jinja", "--tokenizer", "/projects/p/instruct"],
        ),
        (
            {"tokenizer": "instruct", "chat_template": "mine"},
            ["--chat-template", "/assets/mine", "--tokenizer", "/projects/p/instruct"],
        ),
        ({"tokenizer": "mine"}, ["--tokenizer", "/assets/mine"]),
    ],
)
def test_in_a_run_file(options: dict[str, str], words: list[str]) -> None:
    assert argv(KNOWN, **options) == words


def test_an_asset_comes_first() -> None:
    assert argv({"mine": "/other"}, tokenizer="mine")[-1] == "/assets/mine"


def test_a_name_that_nobody_gave() -> None:
    with pytest.raises(ConfigError, match="tokenizers with a name: base, instruct"):
        argv(KNOWN, tokenizer="bse")


@pytest.mark.parametrize(
    "facts", [5, {"a": 5}, {"a": {}}, {"a": {"path": 5}}, {"a": {"path": "/p", "x": "y"}}]
)
def test_what_is_no_name(facts: Any) -> None:
    with pytest.raises(ConfigError, match="a named tokenizer is a path"):
        argv(facts, tokenizer="a")


def data(settings: Path, *words: str) -> Result:
    out = Out.of(Flags(), {"COLUMNS": "100", "HPCTRAIN_SETTINGS": str(settings)})
    return CliRunner().invoke(command, list(words), obj=out, standalone_mode=False)


def test_on_the_command_line(tmp_path: Path, tokenizer: Path) -> None:
    """The template lies elsewhere and is used by the command of the documents, too."""
    lone = tmp_path / "alone/tokenizer.json"
    lone.parent.mkdir()
    shutil.copy(tokenizer / "tokenizer.json", lone)
    (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    settings = tmp_path / "settings.toml"
    settings.write_text(
        "[cluster.local.facts.tokenizers]\n"
        f'base = "{lone}"\nchat = {{ path = "{lone}", template = "{tmp_path / "t.jinja"}" }}\n'
    )
    text = reference.jsonl(tmp_path / "a.jsonl", [{"text": "the fox"}])
    done = data(settings, "prepare", str(text), "--output-prefix", str(tmp_path / "x"), "--tokenizer", "base")
    assert done.exception is None
    assert reference.read(tmp_path / "x_text_document") == reference.tokens(tokenizer, ["the fox"])
    chat = reference.jsonl(tmp_path / "c.jsonl", [{"messages": CHAT}])
    words = ("--input", str(chat), "--output-prefix", str(tmp_path / "y"), "--jsonl-keys", "messages")
    done = data(settings, "preprocess_data_with_chat_template", *words, "--tokenizer-path", "chat")
    assert done.exception is None
    assert reference.read(tmp_path / "y_messages_document") == reference.tokens(tokenizer, ["a\nb\n"], end="")


def test_files_are_not_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, or a name of the hub, asks nobody."""
    monkeypatch.setattr(named, "_detected_tokenizers", lambda out: pytest.fail("asked"))
    words = ("--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tmp_path / "none"))
    done = data(tmp_path / "s.toml", "prepare", str(reference.jsonl(tmp_path / "a.jsonl", [])), *words)
    assert isinstance(done.exception, ConfigError)
