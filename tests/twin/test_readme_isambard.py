"""Isambard's README, typed from its install line; its extras come from the machine's own index."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.checkpoints.models import GPT_NEOX, make
from tests.docs.blocks import blocks, commands
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready, repository, shadow
from tests.twin.test_readme_begin import lines, wheels
from tests.twin.test_walk_isambard import EXAMPLES, SITE, WALKS, WORDS, copied, here, tokenizer
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

FOLDER = "/projects/p1/alice-hpctrain"
AGAIN = [f"cd {FOLDER}", "export PATH=$PWD/bin:$PATH"]
"""A second log-in on the way: between the two the index's names become the twin's own."""


class Reader(User):
    """alice in the folder that the README makes."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.name, self.folder = twin, "alice", FOLDER
        self.run = ()

    def types(self, *typed: str) -> str:
        """What the lines print; they must all end well."""
        script = "\n".join(["set -euo pipefail", *typed])
        self.twin.write("/tmp/typed", script)
        env = {"HPCTRAIN_SITE": f"{FOLDER}/site.toml"}
        done = self.twin.run("bash", "-lc", "bash /tmp/typed", user="alice", timeout=540, env=env)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
        return done.stdout + done.stderr


def page(*beginnings: str) -> list[str]:
    """The README's commands that begin so, in its order."""
    listed = [
        command
        for block in blocks(Path("hpc_isambard/README.md"))
        if block.language == "console"
        for command, _ in commands(block.text)
    ]
    return [next(line for line in listed if line.startswith(words)) for words in beginnings]


@pytest.fixture(scope="module")
def reader(twin: Start, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """alice, who has typed the README as far as the plan; what the twin cannot do is replaced then."""
    isambard = ready(twin("isambard"))
    wheels(isambard)
    user = Reader(isambard)
    isambard.sh(f"mkdir -p {FOLDER}", user="alice")
    user.put("site.toml", SITE)
    typed = lines("isambard")
    at = next(n for n, line in enumerate(typed) if line.startswith("hpctrain plan"))
    user.types(*typed[:at], typed[at])  # with the cluster's own extra alone
    user.types(*AGAIN, *page("pip install"))
    shadow(isambard)
    sources = (p for p in (WALKS / "neox").rglob("*") if p.is_file() and p.parent.name != "__pycache__")
    files = {str(p.relative_to(WALKS / "neox")): p.read_text() for p in sources}
    repository(isambard, "GeodesicResearch/geodesic-gpt-neox", files)
    isambard.sh(f"mkdir -p {FOLDER}/source {FOLDER}/tokenizer", user="alice")
    for path in make(tmp_path_factory.mktemp("hf") / "model", GPT_NEOX, "BF16").iterdir():
        copied(user, path.read_bytes(), f"source/{path.name}")
    rows = [{"text": " ".join(WORDS[n:] + WORDS[:n])} for n in range(len(WORDS))]
    user.put("data.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    user.put("tokenizer.json", tokenizer())
    user.put("neox-pretrain.toml", here((EXAMPLES / "neox-pretrain.toml").read_text(), user))
    return user


def test_the_page_s_lines_end_with_a_model(reader: Reader) -> None:
    (data,) = page("hpctrain data preprocess_data")
    said = reader.types(
        *AGAIN,
        data.replace("--workers 50", "--workers 1"),
        "mkdir -p tokens",
        "for end in bin idx; do mv mine_text_document.$end tokens/tokens_text_document.$end; done",
        "cp tokenizer.json tokenizer/",
        "hpctrain convert source --to neox --iteration 5 -o neox-start",
    )
    assert "tokens" in said
    typed = lines("isambard")
    at = next(n for n, line in enumerate(typed) if line.startswith("hpctrain plan"))
    said = reader.types(*AGAIN, *(line for line in typed[at:] if not line.startswith("pip install")))
    assert "neox-pretrain" in said
    assert reader.twin.sh(f"ls {FOLDER}/model/*.safetensors", user="alice")


def test_the_page_s_other_commands_need_nothing_more(reader: Reader) -> None:
    explain, back, publish = page(
        "hpctrain plan neox-pretrain.toml --explain", "hpctrain convert model --to neox", "hpctrain publish"
    )
    said = reader.types(*AGAIN, explain, back, publish)
    assert "libnccl.so.2" in said
    assert "global_step" in said
    assert "--dry-run" in publish
    assert reader.twin.sh(f"ls {FOLDER}/start", user="alice")


def test_the_system_s_python_is_refused_where_no_module_is_loaded(twin: Start) -> None:
    """Without the page's first line the second one fails, as on the site."""
    isambard = twin("isambard")
    first, second, *_ = lines("isambard")
    assert first.split()[:3] == ["module", "load", "cray-python"]
    done: subprocess.CompletedProcess[str] = isambard.run("bash", "-lc", second, user="bob")
    assert done.returncode != 0
    assert "3.6.15" in done.stderr
    assert isambard.run("bash", "-lc", f"{first}\npython3 -V", user="bob").stdout >= "Python 3.10"
