"""The first lines of a container cluster's README, in order, as somebody types them who has nothing yet."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, commands
from tests.packaging.environment import build
from tests.packaging.places import WHEELS
from tests.patience import wait_for
from tests.twin import adapted, rootfs
from tests.twin.alps import BASE
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import python_image, ready, repository, shadow
from tests.twin.site_file import ROOT
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = ROOT / "tests/e2e/walks"
NEEDED = ("attrs", "cattrs", "click", "pluggy", "pyyaml", "tomli", "typing_extensions", "exceptiongroup")
DOCUMENT = """
cd /srv/hub && mkdir -p models/Qwen/Qwen3-0.6B models/openai-community/gpt2 datasets/Salesforce/wikitext
mkdir -p datasets/NbAiLab/merged_npk_ndla_parallel_paragraphs datasets/NbAiLab/nynorsk_norm_200eval
echo '{}' | tee models/Qwen/Qwen3-0.6B/config.json >models/openai-community/gpt2/tokenizer.json
echo text >datasets/Salesforce/wikitext/README.md
echo '{"nb": "jeg", "nn": "eg"}' >datasets/NbAiLab/merged_npk_ndla_parallel_paragraphs/train.jsonl
echo '{"nb": "jeg", "nn_husnorm": "eg"}' >datasets/NbAiLab/nynorsk_norm_200eval/validation.jsonl
"""
OLIVIA = "/cluster/projects/nn9999k/alice-hpctrain"
SITE = 'arch = "x86_64"\n[hardware]\ngpus_per_node = 1\n'


OWN_PROGRAM = """
import json, os, pathlib, sys, time

words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert pathlib.Path(words["--model"], "config.json").exists(), words
assert words["--train_dataset"].endswith(":train"), words
out = pathlib.Path("outputs")  # relative, as many programs have it
out.mkdir()
(out / "run").write_text(os.environ["HPC_RUN"])
print("trains in", os.getcwd(), flush=True)
end = time.monotonic() + 240
while not pathlib.Path("go").exists() and time.monotonic() < end:  # until the other one has begun too
    time.sleep(0.1)
(out / "model.json").write_text(json.dumps(words))
"""


def lines(cluster: str) -> list[str]:
    """The commands of the README's first block."""
    page = (ROOT / f"hpc_{cluster}/README.md").relative_to(ROOT)
    first = next(block for block in blocks(page) if block.language == "console")
    return [command for command, _ in commands(first.text)]


def wheels(twin: Twin) -> None:
    """`~/wheels`, as somebody carries it there who has made the wheels: ours, and what they need."""
    build(ROOT / "dist")
    folder = f"{twin.site.home('alice')}/wheels"
    needed = [w for w in WHEELS.glob("*.whl") if w.name.lower().split("-")[0] in NEEDED]
    twin.sh(f"mkdir -p {folder}", user="alice")
    for wheel in (*(ROOT / "dist").glob("*.whl"), *needed):
        argv = twin.inside(("tee", f"{folder}/{wheel.name}"), "alice", login=False)
        subprocess.run(argv, input=wheel.read_bytes(), stdout=subprocess.DEVNULL, check=True, timeout=60)


def typed(twin: Twin, cluster: str, text: str, example: str, env: Mapping[str, str] | None = None) -> str:
    """Everything that was said; the example becomes `text` before the run is planned."""
    found = [line.replace(" g999", f" {twin.site.overlay.account}") for line in lines(cluster)]
    at = next(n for n, line in enumerate(found) if line.startswith("hpctrain plan"))
    script = "\n".join(["set -euo pipefail", *found[:at], f"cp ~/adapted {example}", *found[at:]])
    twin.write("/tmp/adapted", text)
    home = twin.site.home("alice")
    twin.sh(f"cp /tmp/adapted {home}/adapted; printf 'hf_walk\\n' >{home}/typed")
    twin.write("/tmp/lines", script)
    done = twin.run("bash", "-lc", "bash /tmp/lines <~/typed", user="alice", timeout=300, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout[-3000:])
    return done.stdout


def trained(said: str) -> str:
    """The newest folder that the last command lists, NUMBER-DIGEST; other tests have runs of this name."""
    listed: list[str] = re.findall(r"^\d+-[0-9a-f]{8}(?:-[0-9a-f]{6})?$", said, re.MULTILINE)
    assert listed, said[-2000:]
    return max(listed, key=lambda name: int(name.partition("-")[0]))


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia with all that the document's examples ask the network for, and the wheels in alice's home."""
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    site = ready(twin("olivia"))
    shadow(site)
    python_image(site, "nvcr.io/nvidia/pytorch:25.06-py3")
    example = (ROOT / "hpc_olivia/hpc_olivia/examples/sft-1gpu.toml").read_text()
    requirements = re.findall(r'"(\w+==[\d.]+)"', example)
    assert site.run("bash", "-euc", DOCUMENT).returncode == 0
    assert site.run("python3", f"{EXAMPLE}/wheels.py", "/srv/index", *requirements).returncode == 0
    wheels(site)
    site.sh(f"mkdir -p {OLIVIA}/code", user="alice")
    site.write(f"{OLIVIA}/site.toml", SITE)
    return site


def test_olivia_s_ten_lines_end_with_a_trained_model(olivia: Twin) -> None:
    olivia.write(f"{OLIVIA}/code/train.py", (WALKS / "train.py").read_text())
    example = (ROOT / "hpc_olivia/hpc_olivia/examples/sft-1gpu.toml").read_text()
    site = {"HPCTRAIN_SITE": f"{OLIVIA}/site.toml"}
    said = typed(olivia, "olivia", adapted.olivia(example), "sft-1gpu.toml", site)
    assert "learned 1 words; 1 of 1 exact" in said
    run = trained(said)
    model = olivia.sh(f"cat /cluster/work/projects/nn9999k/alice/checkpoints/nynorsk/{run}*/model.json")
    assert model == '{"jeg": "eg"}'


def is_done(twin: Twin, run: str) -> bool:
    """Whether its training has ended well."""
    return twin.run("test", "-e", f"{run}/steps/train/finished").returncode == 0


def test_two_runs_of_olivia_s_own_code_at_once_share_the_code_and_nothing_else(olivia: Twin) -> None:
    """own-code.toml as it is published; its repository has a program of the test's own."""
    path = "src/nb_gpt_posttrain/nynorsk_translation/train_sft_bokmal_nynorsk.py"
    repository(olivia, "NationalLibraryOfNorway/nb-gpt-posttrain", {path: OWN_PROGRAM})
    alice = User(olivia, "alice", folder="own")
    alice.put("own-code.toml", (ROOT / "hpc_olivia/hpc_olivia/examples/own-code.toml").read_text())
    site = {"HPCTRAIN_SITE": f"{OLIVIA}/site.toml"}
    work = "/cluster/work/projects/nn9999k/alice"
    asset = f"$(echo {work}/hf_cache/git-*)"
    content = f"cd {asset}/. && find . -type f -exec sha256sum {{}} + | sort"
    for _ in range(2):
        done = alice.hpctrain("submit", "own-code.toml", "--account", "nn9999k", env=site)
        assert done.returncode == 0, done.stdout + done.stderr
    begun = f"ls {work}/runs/own-code/*/source/outputs/run 2>/dev/null || :"
    wait_for("both programs", lambda: len(olivia.sh(begun, user="alice").split()) == 2, 240)
    before = olivia.sh(content, user="alice")
    assert len(olivia.sh("squeue -h --me -t R", user="alice").splitlines()) == 2
    runs = [place.partition("/source/")[0] for place in olivia.sh(begun, user="alice").split()]
    olivia.sh(" ".join(["touch", *(f"{run}/source/go" for run in runs)]), user="alice")
    for run in runs:
        wait_for("the end", partial(is_done, olivia, run))
        assert olivia.sh(f"cat {run}/source/outputs/run") == run
        assert f"trains in {run}/source" in olivia.sh(f"cat {run}/logs/train.log")
        assert olivia.run("test", "-s", f"{run}/source/outputs/model.json").returncode == 0
    assert before == olivia.sh(content, user="alice")
    assert path in before
    assert "outputs" not in before


def test_leonardo_s_ten_lines_end_with_a_checkpoint(twin: Start) -> None:
    """With the guide's own way to Automodel, a tree of it beside the run: the index has no such package."""
    leonardo = ready(twin("leonardo"))
    shadow(leonardo)
    model = "models/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
    leonardo.run("bash", "-c", f"mkdir -p /srv/hub/{model} && echo '{{}}' >/srv/hub/{model}/config.json")
    folder = "/leonardo_scratch/fast/EUHPC_D00_001/hpctrain-alice"
    wheels(leonardo)
    for path in (WALKS / "automodel").rglob("*.py"):
        name = f"{folder}/Automodel/{path.relative_to(WALKS / 'automodel')}"
        leonardo.sh(f"mkdir -p {Path(name).parent}", user="alice")
        leonardo.write(name, path.read_text())
    example = (ROOT / "hpc_leonardo/hpc_leonardo/examples/nemotron-lora.toml").read_text()
    said = typed(leonardo, "leonardo", adapted.leonardo(example), "nemotron-lora.toml")
    assert "rank 3 of 4" in said
    assert trained(said)


def test_alps_s_ten_lines_end_with_a_checkpoint(twin: Start) -> None:
    alps = ready(twin("alps"))
    shadow(alps)
    python_image(alps, BASE)
    nanotron = WALKS / "nanotron"
    files = {str(p.relative_to(nanotron)): p.read_text() for p in Path(nanotron).rglob("*.py")}
    commit = repository(alps, "huggingface/nanotron", files)
    assert alps.run("bash", "-euc", DOCUMENT).returncode == 0
    wheels(alps)
    example = (ROOT / "hpc_alps/hpc_alps/examples/nanotron-wikitext.toml").read_text()
    said = typed(alps, "alps", adapted.alps(example, commit), "nanotron-wikitext.toml")
    assert "iteration: 5 / 5" in said
    assert trained(said)
