"""An ejected run.sh finds its tokens where `submit` does, and writes none into itself."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError
from hpctrain.run.disk import secrets
from hpctrain.session import Session
from tests.run.test_secrets import put

RUN = """
name = "r"
cluster = "local"
secrets = {secrets}
[resources]
nodes = 1
time = "5m"
[environment]
use = ""
[train]
use = "command"
[train.command]
argv = ["bash", "-c", "printf %s \\"$HF_TOKEN$HUGGING_FACE_HUB_TOKEN$WANDB_API_KEY$MY_HUB\\""]
ranks = "once"
"""
TOKEN = "t0ken-" + "aB3" * 9
NETRC = (
    "machine example.org login a password no\n# a comment\nmachine api.wandb.ai\n  login u\n  password {}\n"
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that everybody may enter, as pytest's own folders are not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # a job may still write
        Path(name).chmod(0o755)
        (Path(name) / "work").mkdir()
        yield Path(name)


def ejected(home: Path, *names: str, settings: str = "") -> Path:
    """The folder of the ejected run."""
    work = home / "work"
    (work / "run.toml").write_text(RUN.format(secrets=list(names)).replace("'", '"'))
    (home / "settings.toml").write_text(settings)
    environ = {"HOME": str(home), "USER": "me", "HPCTRAIN_SETTINGS": str(home / "settings.toml")}
    Session(work / "run.toml", environ=environ).prepared().eject(work / "out")
    return work / "out"


def started(folder: Path, home: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    own = {"PATH": "/usr/bin:/bin", "HOME": str(home), "HPC_WAIT": "1", "HPC_POLL": "0.1"}
    return subprocess.run(
        ["bash", folder / "run.sh"], env=own | dict(environ), capture_output=True, text=True, timeout=60
    )


def holding(folder: Path) -> list[Path]:
    """The files below it that hold the token."""
    files = (Path(at, name) for at, _, names in os.walk(folder) for name in names)
    return [file for file in files if TOKEN.encode() in file.read_bytes()]


CASES: list[Any] = [
    pytest.param("huggingface", {"HF_TOKEN": TOKEN}, "", "", id="variable"),
    pytest.param("huggingface", {"HUGGING_FACE_HUB_TOKEN": TOKEN}, "", "", id="older variable"),
    pytest.param(
        "huggingface", {"HF_TOKEN": " "}, ".cache/huggingface/token", f"{TOKEN}\n", id="hf auth login"
    ),
    pytest.param("huggingface", {}, ".huggingface/token", f" {TOKEN} \n\n", id="the tutorial's file"),
    pytest.param("huggingface", {"HF_HOME": "{home}/h"}, "h/token", TOKEN, id="HF_HOME"),
    pytest.param("huggingface", {"HF_TOKEN_PATH": "~/mine"}, "mine", TOKEN, id="HF_TOKEN_PATH"),
    pytest.param("huggingface", {"XDG_CACHE_HOME": "{home}/c"}, "c/huggingface/token", TOKEN, id="XDG"),
    pytest.param("wandb", {"WANDB_API_KEY": TOKEN}, "", "", id="W&B's variable"),
    pytest.param("wandb", {}, ".netrc", NETRC.format(TOKEN), id="wandb login"),
    pytest.param(
        "wandb", {"NETRC": "{home}/n"}, "n", f"default login a password {TOKEN}\n", id="NETRC, default"
    ),
    pytest.param("my-hub", {"MY_HUB": TOKEN}, "", "", id="one's own"),
]


@pytest.mark.parametrize(("name", "environ", "file", "text"), CASES)
def test_a_token_is_read_where_submit_reads_it(
    home: Path, name: str, environ: dict[str, str], file: str, text: str
) -> None:
    environ = {key: value.format(home=home) for key, value in environ.items()}
    folder = ejected(home, name)
    if file:
        put(home / file, text)
    kept = holding(home)
    done = started(folder, home, environ)
    assert done.returncode == 0, done.stderr
    log = folder / "logs/train.log"
    assert log.read_text().count(TOKEN) == 1
    log.unlink()
    assert holding(home) == kept  # the private file of the job is gone, and nothing else ever had it
    found = secrets.find(name, {"HOME": str(home)} | environ)
    assert found is not None
    assert found.value == TOKEN


@pytest.mark.parametrize("source", ['{ file = "~/kept/one" }', '{ env = "ELSEWHERE" }'])
def test_what_settings_say_of_a_token_goes_along(home: Path, source: str) -> None:
    folder = ejected(home, "huggingface", settings=f"[secrets]\nhuggingface = {source}\n")
    put(home / "kept/one", TOKEN)
    done = started(folder, home, {"HF_TOKEN": "another", "ELSEWHERE": TOKEN})
    assert done.returncode == 0, done.stderr
    assert (folder / "logs/train.log").read_text() == TOKEN


def test_every_missing_token_is_named_before_anything_begins(home: Path) -> None:
    folder = ejected(home, "huggingface", "wandb")
    done = started(folder, home, {})
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.startswith("the run needs the token huggingface, which is in none of: $HF_TOKEN, ")
    assert second.endswith("in none of: $WANDB_API_KEY, ~/.netrc (machine api.wandb.ai)")
    assert not (folder / "logs/train.log").exists()


@pytest.mark.parametrize(("mode", "works"), [(0o600, True), (0o644, False), (0o606, False)])
def test_a_file_that_others_open_is_refused(home: Path, mode: int, works: bool) -> None:
    folder = ejected(home, "huggingface")
    path = put(home / ".huggingface/token", TOKEN)
    path.chmod(mode)
    path.parent.chmod(0o755)
    done = started(folder, home, {})
    assert (done.returncode == 0) is works
    if not works:
        assert done.stderr == f"{path} can be opened by others: chmod 600 {path}\n"
        with pytest.raises(ConfigError):
            secrets.find("huggingface", {"HOME": str(home)})


@pytest.mark.parametrize("text", ["", "two words", "a\nb", "bell\a"])
def test_what_is_no_token_is_refused_and_not_shown(home: Path, text: str) -> None:
    folder = ejected(home, "huggingface")
    put(home / ".huggingface/token", text)
    done = started(folder, home, {})
    assert done.returncode == 2
    assert done.stderr == "the token huggingface is not one word of printable characters\n"


def test_a_job_that_is_refused_leaves_no_token(home: Path) -> None:
    """The scheduler says no after the token was put where its job would read it."""
    folder = ejected(home, "huggingface")
    script = folder / "run.sh"
    lines = script.read_text().splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("job_train=$(")]
    lines[at] = f"find {home}/.local -type f -exec grep -l {TOKEN} {{}} + >{home}/seen; exit 5"
    script.write_text("\n".join(lines))
    assert started(folder, home, {"HF_TOKEN": TOKEN}).returncode == 5
    (seen,) = (home / "seen").read_text().splitlines()
    assert not Path(seen).exists()
    (home / "work/out/run.sh").unlink()
    assert holding(home) == []
