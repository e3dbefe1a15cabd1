"""The Alps document from nothing, by its own steps, as an ordinary user on the twin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.twin.alps import prepared
from tests.twin.fixtures import Start
from tests.twin.services.inside import repository
from tests.twin.site_file import ROOT
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = Path(__file__).parents[1] / "e2e/walks"
EXAMPLES = ROOT / "hpc_alps/hpc_alps/examples"
LAID = (
    "cd /srv/hub && mkdir -p datasets/Salesforce/wikitext models/openai-community/gpt2 && "
    "echo text >datasets/Salesforce/wikitext/README.md && "
    "echo '{}' >models/openai-community/gpt2/tokenizer.json"
)


def test_the_document_s_steps_end_with_its_artifacts(twin: Start) -> None:
    alps = prepared(twin("alps"))
    assert alps.run("bash", "-c", LAID).returncode == 0
    stand_in = WALKS / "nanotron"
    files = {str(p.relative_to(stand_in)): p.read_text() for p in stand_in.rglob("*.py")}
    commit = repository(alps, "huggingface/nanotron", files)
    user = User(alps, folder="walk")
    alps.sh("rm -rf /iopsstor/scratch/cscs/alice/ce-images")  # the twin is shared: other tests built some
    text = (EXAMPLES / "nanotron-wikitext.toml").read_text()
    # The twin's index has no large package, and its images no compiler: the document's stay unasked for.
    text = re.sub(r'rev = "[0-9a-f]{40}"', f'rev = "{commit}"', text)
    text = re.sub(r'"datasets".*"tqdm",', '"setuptools", "twin-pure",', text)
    text = re.sub(r"^(compile|python) = .*", "", text, flags=re.M)
    user.put("nanotron-wikitext.toml", text)
    user.put("nanotron-wikitext.yaml", (EXAMPLES / "nanotron-wikitext.yaml").read_text())
    user.put("walk.sh", (WALKS / "alps.sh").read_text())
    account = {
        "HPCTRAIN_SETTINGS": f"{user.folder}/settings.toml",
        "SLURM_ACCOUNT": alps.site.overlay.account,
    }
    user.put("settings.toml", f'[run.resources]\naccount = "{alps.site.overlay.account}"\n')
    done = alps.run("bash", "-l", "walk.sh", user="alice", cwd=user.folder, timeout=480, env=account)
    assert done.returncode == 0, (
        done.stdout
        + done.stderr
        + user.twin.sh("tail -n 20 /capstor/scratch/cscs/alice/hpctrain/runs/nanotron-wikitext/*/logs/* || :")
    )
    for said in ("inside: /usr", "iteration: 5 / 5", "loss", "/5/model_config.json"):
        assert said in done.stdout
    assert len(re.findall(r"^[0-9a-f]{64}  /iopsstor\S+\.sqsh$", done.stdout, re.M)) == 2
