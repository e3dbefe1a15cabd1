"""A dataset brought at the login place, tokenised in a job without a network, used by the next step."""

from __future__ import annotations

import json

import pytest

from tests.patience import wait_for
from tests.twin.fixtures import Start
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

ROWS = [{"text": f"row {i} of the quick brown fox"} for i in range(300)]
LOOK = """
import hashlib, json, socket, struct, sys
folder = sys.argv[1]
said = json.load(open(f"{folder}/tokens_text_document.manifest.json"))
index = open(f"{folder}/tokens_text_document.idx", "rb").read()
held = {end: hashlib.sha256(open(f"{folder}/tokens_text_document{end}", "rb").read()).hexdigest() for end in
        (".bin", ".idx")}
assert held == {end: said["files"][f"tokens_text_document{end}"]["sha256"] for end in held}, held
print("trained on", struct.unpack_from("<Q", index, 18)[0], "documents", said["rows"]["read"], "rows")
try:
    socket.create_connection(("huggingface.co", 443), 3)
    print("the network is there")
except OSError:
    print("no network")
"""
MAKE = """
from tokenizers import Tokenizer, models, pre_tokenizers
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {"<|endoftext|>": 0, **{letter: i + 1 for i, letter in enumerate(letters)}}
made = Tokenizer(models.BPE(vocabulary, []))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.add_special_tokens(["<|endoftext|>"])
print(made.to_str())
"""
RUN = """
[assets]
corpus    = { hub = "org/corpus", kind = "dataset" }
tokenizer = { hub = "org/tokenizer", files = ["tokenizer*.json"] }

[assets.tokens]
use     = "tokens"
options = { inputs = ["corpus:train"], tokenizer = "tokenizer" }

[train]
use = "command"

[train.command]
ranks = "once"
argv  = ["python", "@/look.py", "{assets.tokens}"]
"""


@pytest.mark.parametrize("name", ["frontier"])
def test_from_the_hub_to_the_trainer(name: str, twin: Start, torch: None) -> None:
    one = twin(name)
    wait_for("the hub", lambda: one.run("curl", "-sS", "https://huggingface.co/").returncode == 0)
    one.sh("mkdir -p /srv/hub/datasets/org/corpus/data /srv/hub/models/org/tokenizer", user="root")
    made = one.run("/opt/twin/torch/bin/python", "-c", MAKE)
    assert made.returncode == 0, made.stderr
    rows = "".join(json.dumps(row) + "\n" for row in ROWS)
    one.write("/srv/hub/datasets/org/corpus/data/train-00000-of-00001.jsonl", rows, user="root")
    one.write(
        "/srv/hub/datasets/org/corpus/data/test-00000-of-00001.jsonl", '{"text": "other"}\n', user="root"
    )
    one.write("/srv/hub/models/org/tokenizer/tokenizer.json", made.stdout, user="root")
    user = User(one, folder="data")
    head = (EXAMPLE / "run.toml").read_text().partition("[assets]")[0].replace('"twin"', '"tokens"')
    user.put("run.toml", head + RUN.replace("@", user.folder))
    user.put("look.py", LOOK)
    user.submit()
    found = user.until("done", seconds=240)
    assert {row["step"] for row in found["steps"]} >= {"corpus", "tokenizer", "tokens", "train"}
    assert not user.step(found, "corpus").get("job"), "the login place has the network"
    assert user.step(found, "tokens")["job"] != user.step(found, "train")["job"]
    said = user.log()
    assert "trained on 300 documents 300 rows" in said
    assert "no network" in said
