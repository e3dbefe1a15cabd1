"""The Leonardo document from nothing on the twin, where no compute node has any route; and its faults."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.services.inside import ready, shadow
from tests.twin.site_file import ROOT
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WALKS = Path(__file__).parents[1] / "e2e/walks"
EXAMPLES = ROOT / "hpc_leonardo/hpc_leonardo/examples"
MODEL = "models/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"


@pytest.fixture(scope="module")
def user(twin: Start) -> User:
    """alice with the example's files and the stand-in's source tree."""
    leonardo = ready(twin("leonardo"))
    shadow(leonardo)
    leonardo.run("bash", "-c", f"mkdir -p /srv/hub/{MODEL} && echo '{{}}' >/srv/hub/{MODEL}/config.json")
    found = User(leonardo, folder="walk")
    for path in (WALKS / "automodel").rglob("*.py"):
        name = f"Automodel/{path.relative_to(WALKS / 'automodel')}"
        leonardo.sh(f"mkdir -p {found.folder}/{Path(name).parent}", user="alice")
        found.put(name, path.read_text())
    for path in (*EXAMPLES.glob("nemotron*"), EXAMPLES / "chats.jsonl"):
        found.put(path.name, here(path.read_text()))
    found.put("leonardo.sh", (WALKS / "leonardo.sh").read_text())
    account = leonardo.site.overlay.account
    found.put("settings.toml", f'[run.resources]\naccount = "{account}"\n')
    return found


def here(text: str) -> str:
    """The document's own tree instead of a release; the twin's Python and what its index has."""
    tree = 'packages = [{ name = "nemo-automodel", path = "Automodel" }]\npython = "3.13"'
    return re.sub(r'packages = \["nemo-automodel.*', tree, text).replace("1.5.3.post1", "1.5.3")


def typed(user: User, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in the user's folder, in a login shell's environment."""
    env = {
        "HPCTRAIN_SETTINGS": f"{user.folder}/settings.toml",
        "SLURM_ACCOUNT": user.twin.site.overlay.account,
    }
    line = f"PATH=~/tools/bin:$PATH; {' '.join(words)}"
    return user.twin.run("bash", "-lc", line, user="alice", cwd=user.folder, timeout=540, env=env)


def test_the_document_s_steps_end_with_its_artifacts(user: User) -> None:
    done = typed(user, "bash leonardo.sh")
    assert done.returncode == 0, done.stdout + done.stderr + logs(user)
    for said in (
        "PyTorch: 2.9.0, CUDA: True, mamba_ssm: OK, nemo_automodel: OK",
        "rank 0 of 1, cores of a task 8",
        "rank 3 of 4, cores of a task 32",
        "/epoch_0_step_199/losses.json",
        "/epoch_0_step_19/losses.json",
    ):
        assert said in done.stdout, done.stdout
    again = done.stdout.partition("== 6")[2].partition("== ")[0].splitlines()[1:]
    made = [line for line in again if line]
    assert len(made) == 6, again
    assert all(line.endswith(" exists") for line in made), again
    wheel = r"^[0-9a-f]{64}  \S+/(?:mamba_ssm|causal_conv1d)-\S+\.whl$"
    assert len(re.findall(wheel, done.stdout, re.M)) == 2, done.stdout


def test_a_flipped_bit_in_the_kept_wheel_is_named_and_built_again(user: User) -> None:
    (kept,) = user.twin.sh("readlink -f $FAST/hpctrain/env/wheel-mamba-ssm-*/*.whl", user="alice").split()
    fault(user.twin, "corrupt", kept)
    user.twin.sh("rm $FAST/hpctrain/env/venv-*", user="alice")
    done = typed(user, "hpctrain build nemotron-lora.toml --wait")
    assert done.returncode == 0, done.stdout + done.stderr + logs(user)
    said = logs(user)
    assert "mamba_ssm-2.2.5" in said
    assert "FAILED" in said
    assert "is made anew" in said
    assert typed(user, "hpctrain exec nemotron-lora.toml -- python -c 'import mamba_ssm'").returncode == 0


def test_a_build_that_asks_for_the_network_fails_and_says_how_to_mend_it(user: User) -> None:
    text = user.twin.sh(f"cat {user.folder}/nemotron-lora.toml").replace('"nemotron-lora"', '"asks"')
    without = '[environment.venv.builds.mamba-ssm]\nenv = { MAMBA_FORCE_BUILD = "FALSE" }\n'
    user.put("asks.toml", f"{text}\n{without}")
    typed(user, "hpctrain lock asks.toml")
    done = typed(user, "hpctrain build asks.toml --wait")
    assert done.returncode != 0
    said = logs(user, "asks-build")
    assert "the build of mamba-ssm asked for the network" in said
    assert "_FORCE_BUILD" in said


def logs(user: User, run: str = "*") -> str:
    """The ends of what all steps said."""
    line = f"tail -n 15 /leonardo_work/*/alice/hpctrain/runs/{run}/*/logs/*"
    return user.twin.run("bash", "-c", line).stdout[-12000:]
