"""Tokens: found where people keep them, written privately, shown nowhere."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.run import Resources
from hpctrain.model.words import Secret
from hpctrain.plan.goal import Goal
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.prepare.goals import execute
from hpctrain.run.system.scrub import Sink, scrub
from hpctrain.session import Session
from tests.run.conftest import mode

HF = "hf_" + "aB3" * 12


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, ".cache/huggingface/token"),
        ({}, ".huggingface/token"),
        ({"HF_HOME": "{home}/hub"}, "hub/token"),
        ({"HF_TOKEN_PATH": "~/mine"}, "mine"),
        ({"XDG_CACHE_HOME": "{home}/c"}, "c/huggingface/token"),
    ],
)
def test_the_hubs_token_is_found(tmp_path: Path, environ: dict[str, str], place: str) -> None:
    put(tmp_path / place, f"{HF}\n")
    environ = {k: v.format(home=tmp_path) for k, v in environ.items()} | {"HOME": str(tmp_path)}
    token = secrets.find("huggingface", environ)
    assert token is not None
    assert (token.value, token.place) == (HF, str(tmp_path / place))
    assert HF not in repr(token)


def test_a_variable_is_taken_before_a_file(tmp_path: Path) -> None:
    put(tmp_path / ".cache/huggingface/token", HF)
    token = secrets.find("huggingface", {"HOME": str(tmp_path), "HF_TOKEN": "other"})
    assert token is not None
    assert (token.value, token.place) == ("other", "$HF_TOKEN")


def test_wandb_is_read_from_netrc(tmp_path: Path) -> None:
    put(
        tmp_path / ".netrc",
        "machine example.org login a password no\nmachine api.wandb.ai login user password k3y\n",
    )
    token = secrets.find("wandb", {"HOME": str(tmp_path)})
    assert token is not None
    assert token.value == "k3y"
    assert secrets.find("wandb", {"HOME": "/nowhere"}) is None


def test_a_broken_netrc_is_not_quoted(tmp_path: Path) -> None:
    put(tmp_path / ".netrc", "machine api.wandb.ai login user pasword s3cretvalue\n")
    with pytest.raises(ConfigError, match="cannot be read as a netrc file") as caught:
        secrets.find("wandb", {"HOME": str(tmp_path)})
    assert "s3cretvalue" not in repr(caught.value.problems)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("file_mode", "home_mode", "fault"),
    [
        (0o600, 0o755, ""),
        (0o644, 0o700, ""),
        (0o644, 0o755, "can be read by everybody"),
        (0o606, 0o700, "may be written by everybody"),
    ],
)
def test_a_token_file_that_others_can_open_is_refused(
    shared: Path, file_mode: int, home_mode: int, fault: str
) -> None:
    home = shared / "home"
    path = put(home / "t", HF)
    path.chmod(file_mode)
    home.chmod(home_mode)
    environ, settings = {"HOME": str(home)}, {"huggingface": {"file": "~/t"}}
    if not fault:
        assert secrets.require(["huggingface"], environ, settings=settings)
        return
    with pytest.raises(ConfigError) as caught:
        secrets.require(["huggingface"], environ, settings=settings)
    (problem,) = caught.value.problems
    assert (problem.code, problem.message) == ("secret-file", f"{path} {fault}")
    assert problem.hint.startswith(f"chmod 600 {path}")


def test_settings_win_and_name_new_secrets(tmp_path: Path) -> None:
    put(tmp_path / "t", "  from-file \n\n")
    settings = {"huggingface": {"file": "~/t"}, "mine": {"env": "MINE"}}
    environ = {"HOME": str(tmp_path), "HF_TOKEN": "no", "MINE": "from-env"}
    tokens = secrets.require(["huggingface", "mine"], environ, settings=settings)
    assert [t.value for t in tokens] == ["from-file", "from-env"]


@pytest.mark.parametrize("source", ["text", {}, {"file": "a", "env": "b"}, {"value": "s3cretvalue"}])
def test_a_source_is_a_file_or_a_variable(source: object) -> None:
    with pytest.raises(ConfigError, match="must say where the token comes from") as caught:
        secrets.find("x", {}, settings={"x": source})
    assert "s3cretvalue" not in repr(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "said"), [("", "is empty"), ("s3cret\nvalue", "one word"), ("s3\0cret", "one word")]
)
def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path, text: str, said: str) -> None:
    put(tmp_path / "t", text)
    with pytest.raises(ConfigError, match=said) as caught:
        secrets.find("x", {}, settings={"x": {"file": str(tmp_path / "t")}})
    assert "s3" not in repr(caught.value.problems)


def test_all_missing_tokens_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match="no token found for huggingface, other"):
        secrets.require(["huggingface", "other"], {"HOME": "/nowhere"})


def test_tokens_lie_privately_outside_the_run_and_can_be_removed(tmp_path: Path, any_umask: None) -> None:
    run = RunDirectory(tmp_path / "runs" / "demo" / "1-4f1c9a2e")
    tokens = [secrets.Token("huggingface", HF, "$X")]
    home = tmp_path / "state/secrets/demo-1-4f1c9a2e"
    folder = secrets.place(tokens, home, run, "train")
    assert folder == home / "train"
    assert (folder / "huggingface").read_text() == HF + "\n"
    assert [mode(p) for p in (folder, folder / "huggingface")] == [0o700, 0o600]
    assert secrets.placed(home) == ("train",)
    secrets.remove(home, "train")
    secrets.remove(home, "train")
    assert secrets.placed(home) == ()
    assert not folder.parent.exists()


def test_tokens_never_lie_in_the_run_directory(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "demo" / "1-4f1c9a2e")
    run.path.mkdir(parents=True)
    (tmp_path / "state").symlink_to(run.path)
    with pytest.raises(ConfigError, match="lies in the run directory"):
        secrets.place([], tmp_path / "state", run, "train")
    assert list(run.path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"token={HF} ok", "token=*** ok"),
        ("push ghp_" + "a1" * 18, "push ***"),
        ("clone https://ada:p%40ss@host/x.git", "clone https://***@host/x.git"),
        ("wandb_api_key: " + "0a" * 20, "wandb_api_key: ***"),
        ('"token": "' + "0a" * 20 + '"', '"token": "***"'),
        ("commit " + "0a" * 20, "commit " + "0a" * 20),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        ("AKIA" + "A1" * 8, "***"),
        ("see https://host:8080/a@b and hf_transfer", "see https://host:8080/a@b and hf_transfer"),
        ("git@github.com:a/b", "git@github.com:a/b"),
    ],
)
def test_well_known_shapes_are_hidden_and_other_text_is_left(text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_known_values_are_hidden_the_longest_first() -> None:
    assert scrub("key-long-tail key-long x", ["key-long", "key-long-tail", "x"]) == "*** *** x"


def test_a_megabyte_is_scrubbed_quickly() -> None:
    import time

    began = time.process_time()
    scrub("://" * 300_000 + "token=" * 50_000, ["value"])
    assert time.process_time() - began < 2


def test_a_stream_is_scrubbed_wherever_it_is_cut() -> None:
    values = ["key-long-tail", "key-long", "abab", "ab-key", "no"]
    text = b"xabab key-long-tai key-long-tail ababab-key no\nkey-long ab"
    clean = b"x*** ***-tai *** ****** no\n*** ab"
    every = range(len(text) + 1)
    for first in every:
        for second in range(first, len(text) + 1):
            sink = Sink(values)
            pieces = [text[:first], text[first:second], text[second:]]
            assert b"".join(sink.feed(piece) for piece in [*filter(None, pieces), b""]) == clean


def test_a_stream_is_held_back_only_where_a_secret_may_begin() -> None:
    sink = Sink(["key-long-tail"])
    assert sink.feed(b"loss 3.1\nkey-") == b"loss 3.1\n"
    assert sink.feed(b"board ke") == b"key-board "
    assert sink.feed(b"") == b"ke"
    assert sink.feed(b"") == b""


@pytest.mark.parametrize("share", [0.0, 0.001], ids=["no secret", "one in many lines"])
def test_100_megabytes_of_a_log_take_a_second(share: float) -> None:
    import time

    values = [f"canary{number}{'x' * 30}" for number in range(10)]
    lines = [f"step {number} loss 3.14159 lr 1e-4 tokens/s 12345" for number in range(20_000)]
    for number in range(int(len(lines) * share)):
        lines[number * 900] += values[number % 10]
    block = "\n".join(lines).encode()
    pieces = [block[at : at + 65536] for at in range(0, len(block), 65536)]
    size = sum(map(len, pieces))
    seconds = []
    for _ in range(5):
        sink, began = Sink(values), time.process_time()
        for piece in pieces:
            sink.feed(piece)
        seconds.append(time.process_time() - began)
    assert size / min(seconds) >= 100e6


def test_a_command_on_a_node_needs_no_token_that_is_not_here(tmp_path: Path) -> None:
    """`exec -- nvidia-smi` asks for nothing; a token that is here it gets, as the training does."""
    run = tmp_path / "run.toml"
    run.write_text(
        'name = "r"\ncluster = "local"\nsecrets = ["huggingface", "wandb"]\n[environment]\nuse = ""\n'
        '[train]\nuse = "command"\n[train.command]\nargv = ["true"]\n'
    )

    def planned(goal: Goal | None) -> tuple[list[str], list[str]]:
        environ = {"HOME": str(tmp_path), "USER": "me", "WANDB_API_KEY": "k3y"}
        plan = Session(run, environ=environ, goal=goal).plan()
        env = plan.steps[-1].around.env
        told = [p.message for p in plan.problems if p.code == "secret"]
        return sorted(v.value.name for v in env if isinstance(v.value, Secret)), told

    said = "no token found for huggingface: exec goes without it"
    assert planned(execute(["true"], Resources(nodes=1))) == (["wandb"], [said])
    assert planned(None) == (["huggingface", "wandb"], [])
