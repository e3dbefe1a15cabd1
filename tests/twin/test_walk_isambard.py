"""The Isambard document from nothing, by its own steps, as an ordinary user on the twin."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.checkpoints.models import GPT_NEOX, make
from tests.e2e.test_tunnel import STAND_IN, archive
from tests.twin.fixtures import Start
from tests.twin.life import TORCH
from tests.twin.services.inside import ready, repository, shadow
from tests.twin.services.packages import STARTS_WITH
from tests.twin.site_file import ROOT
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = Path(__file__).parents[1] / "e2e/walks"
EXAMPLES = ROOT / "hpc_isambard/hpc_isambard/examples"
SITE = """
# The twin's programs are x86_64, and a rank needs a core of this machine.
arch = "x86_64"
[hardware]
gpus_per_node = 1
[[place]]
name = "login"
source = "brics-system"
here = true
provides = ["network"]
[[place]]
name = "compute"
source = "inferred"
provides = ["network", "target", "gpu"]
gpus = 1
"""
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog")


def tokenizer() -> str:
    """A tokenizer.json with a handful of words."""
    vocab = {word: number for number, word in enumerate(("<|endoftext|>", "<unk>", *WORDS))}
    end = {"id": 0, "content": "<|endoftext|>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    none = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    said = {"version": "1.0", **none, "added_tokens": [{**end, **flags}]}
    return json.dumps({**said, "pre_tokenizer": {"type": "Whitespace"}, "model": model})


@pytest.fixture(scope="module")
def user(twin: Start, tmp_path_factory: pytest.TempPathFactory) -> User:
    """alice with the example's files, a small model, a corpus, and the fork's stand-in on the git host."""
    isambard = ready(twin("isambard"))
    shadow(isambard)
    stand_in = WALKS / "neox"
    sources = (p for p in stand_in.rglob("*") if p.is_file() and p.parent.name != "__pycache__")
    files = {str(p.relative_to(stand_in)): p.read_text() for p in sources}
    repository(isambard, "GeodesicResearch/geodesic-gpt-neox", files)
    found = User(isambard, folder="walk")
    isambard.sh(f"mkdir -p {found.folder}/model {found.folder}/tokenizer", user="alice")
    model = make(tmp_path_factory.mktemp("hf") / "model", GPT_NEOX, "BF16")
    for path in model.iterdir():
        copied(found, path.read_bytes(), f"model/{path.name}")
    isambard.sh(f"mkdir -p {found.folder}/served", user="alice")
    copied(found, archive(STAND_IN), "served/cli.tar.gz")
    rows = [{"text": " ".join(WORDS[n:] + WORDS[:n])} for n in range(len(WORDS))]
    found.put("corpus.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    found.put("tokenizer/tokenizer.json", tokenizer())
    found.put("tokenizer/tokenizer_config.json", json.dumps({"eos_token": "<|endoftext|>"}))
    for name in ("neox-model.yml", "neox-run.yml"):
        found.put(name, (EXAMPLES / name).read_text())
    found.put("neox-pretrain.toml", here((EXAMPLES / "neox-pretrain.toml").read_text(), found))
    found.put("isambard.sh", (WALKS / "isambard.sh").read_text())
    found.put("site.toml", SITE)
    return found


def copied(user: User, content: bytes, name: str) -> None:
    """A file of bytes in the user's folder."""
    user.put(f"{name}.b64", base64.b64encode(content).decode())
    user.twin.sh(f"cd {user.folder} && base64 -d {name}.b64 >{name} && rm {name}.b64", user="alice")


def here(text: str, user: User) -> str:
    """Two nodes, the twin's one Python, and of the packages those that its index has."""
    text = text.replace("nodes = 8 ", "nodes = 2 ").replace('time = "24h"', 'time = "10m"')
    listed = ", ".join(f'"{name}"' for name in ("twin-pure", *STARTS_WITH))
    packages = f'packages = [{listed}]\npython = "3.13"'
    text = re.sub(r"^stack = .*?^packages = \[.*?^\]", packages, text, flags=re.M | re.S)
    text = re.sub(r"^compile = .*", 'compile = ["flash-attn==2.6.3"]', text, flags=re.M)
    build = "\n[environment.uv]\nown_python = false\n"  # no public index of Pythons is in the twin
    build += '\n[environment.uv.builds.flash-attn]\nbuild = ["ninja", "packaging"]\n'
    assets = "".join(f'{name} = {{ path = "{user.folder}/{name}" }}\n' for name in ("tokenizer", "tokens"))
    text = re.sub(r"\[assets\]\n.*?(?=\[train\])", f"[assets]\n{assets}\n", text, flags=re.S)
    return f'{text}\n[env]\nWALK_START = "{user.folder}/neox-start"\n{build}'


def typed(user: User, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A line in the user's folder, in a login shell's environment."""
    env = {
        "HPCTRAIN_SITE": f"{user.folder}/site.toml",
        **more,
    }
    line = f"PATH=~/tools/bin:$PATH; {line}"
    return user.twin.run("bash", "-lc", line, user="alice", cwd=user.folder, timeout=540, env=env)


def logs(user: User) -> str:
    """The ends of what all steps said."""
    return user.twin.run("bash", "-c", "tail -n15 /scratch/*/alice*/hpctrain/runs/*/*/logs/*").stdout[-12000:]


def test_the_document_s_steps_end_with_its_artifacts(user: User, torch: None) -> None:
    digest = user.twin.sh(f"sha256sum {user.folder}/served/cli.tar.gz").split()[0]
    serve = "/usr/bin/python3 -m http.server 8099 --bind 127.0.0.1 --directory served >/dev/null 2>&1 &"
    more = {
        # hpctrain's own Python has no tokenizers on the twin; the environment with torch does.
        "WALK_DATA": f"env PYTHONPATH={ROOT}/plugins:{ROOT}/core {TORCH}/bin/python -m hpctrain_tokens",
        "WALK_CLI": f"--cli http://127.0.0.1:8099/cli.tar.gz --sha256 {digest}",
    }
    done = typed(user, f"{serve} trap 'kill %1' EXIT; bash isambard.sh", **more)
    assert done.returncode == 0, done.stdout + done.stderr + logs(user)
    own = r"/projects/\S+/env/uv-\w+/lib/python3.13/site-packages/nvidia/nccl/lib/libnccl\.so\.2"
    said = rf"torch 2\.10\.0; task preloads {own}; srun preloads \['none'\]"
    assert re.search(said, done.stdout), done.stdout
    (loaded,) = re.findall(r"nccl in memory: (.*)", done.stdout)
    assert re.fullmatch(r"/projects/\S*uv-\S*/nvidia/nccl/lib/libnccl\.so\.2", loaded), loaded
    helpers = r"^helpers /scratch/\S+/neox-pretrain/\S+/source/megatron/data/helpers\.\S+"
    assert re.search(helpers, done.stdout, re.M), done.stdout
    assert "torch 2.10.0 was built with NCCL 2.27.5" in done.stdout
    assert "CUDA: True, 1 GPU" in done.stdout
    assert "link   https://vscode.dev/tunnel/" in done.stdout
    sums = re.findall(r"^([0-9a-f]{64})  (\S+)$", done.stdout, re.M)
    tokens = [digest for digest, name in sums if name.endswith("_text_document.bin")]
    assert len(tokens) == 2
    assert len(set(tokens)) == 1, "both commands make the same tokens"
    weights = [digest for digest, name in sums if name.endswith(".safetensors")]
    assert len(weights) == 2
