"""A field that the staged data lacks is refused on Olivia's login node, with no training in the queue."""

from __future__ import annotations

import json
import re

import pytest

from tests.twin.fixtures import Start
from tests.twin.services.inside import ready
from tests.twin.site_file import ROOT
from tests.twin.test_overlay import POOL, prepared
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

EXAMPLE = ROOT / "hpc_olivia/hpc_olivia/examples/sft-1gpu.toml"
LAID = """
cd /srv/hub && mkdir -p models/Qwen/Qwen3-0.6B datasets/NbAiLab/{merged_npk_ndla_parallel_paragraphs,nynorsk_norm_200eval}
echo '{}' >models/Qwen/Qwen3-0.6B/config.json
echo '{"nb": "jeg", "nn": "eg"}' >datasets/NbAiLab/merged_npk_ndla_parallel_paragraphs/train.jsonl
echo '{"nb": "jeg", "nn_husnorm": "eg"}' >datasets/NbAiLab/nynorsk_norm_200eval/validation.jsonl
"""  # noqa: E501


@pytest.fixture
def alice(twin: Start) -> User:
    """Alice with the document's run, in an image that is there."""
    olivia = ready(prepared(twin("olivia")))
    assert olivia.run("bash", "-euc", LAID).returncode == 0
    user = User(olivia, folder="fields")
    text = re.sub(r"^packages = .*", "", EXAMPLE.read_text(), flags=re.M)
    text = text.replace("[assets]", f'[environment.apptainer]\nimage = "{POOL}/base.sqsh"\n\n[assets]')
    user.put("right.toml", text)
    user.put("run.toml", text.replace("nn_husnorm", "nn_husnrm"))
    return user


def test_a_wrong_field_of_the_evaluation_is_exit_2_and_no_job(alice: User) -> None:
    account = ("--account", alice.twin.site.overlay.account)
    done = alice.hpctrain("submit", "run.toml", *account)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error[step-refused]: the evaluation data has no field nn_husnrm" in done.stderr
    assert re.search(r"run\.toml:\d+:", done.stderr), done.stderr
    assert re.search(r'^ *\d+ . *eval_target_field = "nn_husnrm"', done.stderr, re.M), done.stderr
    assert 'eval_target_field = "nn_husnorm"' in done.stderr
    assert "has: nb, nn_husnorm" in done.stderr
    assert not alice.twin.sh("squeue -h --me")
    states = {row["step"]: row["state"] for row in alice.status()["steps"]}
    assert (states["evaluation"], states["fields"], states["train"]) == ("done", "failed", "planned")
    done = alice.hpctrain("submit", "right.toml", *account, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(json.loads(done.stdout)["jobs"]) == ["train"]
    assert alice.hpctrain("cancel", "nynorsk").returncode == 0
