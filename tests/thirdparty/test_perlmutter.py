"""What a stranger could not say of Perlmutter: ten strains of the review, each in what a run becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.thirdparty.scratch import HERE, Scratch

EXAMPLE = HERE / "hpctrain-perlmutter/hpc_perlmutter/examples/two-nodes.toml"
DATA = '\n[assets]\ncorpus = { url = "https://example.org/corpus.bin", sha256 = "' + "0" * 64 + '" }\n'


def hpctrain(installed: Scratch, folder: Path, *argv: str) -> tuple[int, str]:
    """A command on the example with something to download, in a folder of its own."""
    text = EXAMPLE.read_text().replace('"--out"', '"{assets.corpus}", "--out"')
    (folder / "run.toml").write_text(text + DATA)
    done = installed.run("hpctrain", *argv, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def planned(installed: Scratch, folder: Path, *argv: str) -> dict[str, Any]:
    code, output = hpctrain(installed, folder, "plan", "run.toml", "--json", "--account", "m1234_g", *argv)
    document: dict[str, Any] = json.loads(output)
    assert code in (0, 2), output
    return document["plan"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def ejected(installed: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of the run, as a project member who types the account with _g gets them."""
    folder = tmp_path_factory.mktemp("perlmutter")
    code, output = hpctrain(installed, folder, "eject", "run.toml", "--account", "m1234_g", "--out", "out")
    assert code == 0, output
    return folder / "out"


def test_gpu_jobs_and_others_are_charged_to_their_own_account(ejected: Path) -> None:
    nodes = {node["name"]: node for node in json.loads((ejected / "graph.json").read_text())["nodes"]}
    accounts = {
        name: [word for word in node["submit"] if str(word).startswith("--account=")]
        for name, node in nodes.items()
        if node.get("submit")
    }
    assert accounts["train"] == ["--account=m1234_g"]
    assert list(accounts) == ["train"]  # the login node does the rest


def test_a_long_download_is_a_cpu_job_of_the_project(installed: Scratch, tmp_path: Path) -> None:
    """A login node takes no step of more than an hour."""
    facts = installed.site / "hpc_perlmutter/cluster.toml"
    before = facts.read_text()
    try:
        facts.write_text(before.replace("max_minutes = 60", "max_minutes = 1"))
        argv = ("eject", "run.toml", "--account", "m1234_g", "--out", "out")
        code, output = hpctrain(installed, tmp_path, *argv)
    finally:
        facts.write_text(before)
    # The environment can be kept where the login node alone writes, so this run has no place for it.
    assert (code, "gpu cannot write to env (/global/common/software/{project}" in output) == (2, True), output


def test_the_folder_of_the_project_has_another_name_than_the_account(ejected: Path) -> None:
    roots = json.loads((ejected / "graph.json").read_text())["roots"]
    assert roots["env"] == "/global/common/software/m1234/hpctrain/env"
    assert roots["assets"] == {"join": [{"var": "CFS"}, "/m1234/hpctrain/assets"]}


def test_variables_of_its_paths_reach_the_job(ejected: Path) -> None:
    job = (ejected / "steps/train/job.sh").read_text()
    assert "#SBATCH --export=HOME,LANG,LOGNAME,USER,PSCRATCH,CFS\n" in job


def test_ranks_see_the_gpus_in_reverse(ejected: Path) -> None:
    assert (
        "export CUDA_VISIBLE_DEVICES=3,2,1,0  # perlmutter: " in (ejected / "steps/train/task.sh").read_text()
    )


def test_what_is_kept_where_only_the_login_node_writes_is_made_there(
    installed: Scratch, tmp_path: Path
) -> None:
    torch = ("--set", 'environment.packages=["torch==2.9.0"]')
    steps = {step["step"]["name"]: step["step"] for step in planned(installed, tmp_path, *torch)["steps"]}
    assert steps["env"]["place"] == "login"
    assert steps["env"]["makes"]["role"] == "env"
    assert steps["verify"]["place"] == "gpu"
    assert steps["verify"]["makes"]["role"] == "state"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("resources.queue=interactive",), "queue-forbids", "hpctrain run run.toml"),
        (("resources.queue=preempt", "resources.time=5m"), "time-limit", "--set resources.time=2h"),
        (("resources.queue=debug", "resources.nodes=9"), "node-limit", "--set resources.nodes=8"),
        (("resources.queue=hbm80g", "resources.nodes=257"), "node-limit", "--set resources.nodes=256"),
    ],
)
def test_what_its_queues_refuse(
    installed: Scratch, tmp_path: Path, words: tuple[str, ...], code: str, hint: str
) -> None:
    sets = [part for word in words for part in ("--set", word)]
    problems = {p["code"]: p for p in planned(installed, tmp_path, *sets)["problems"]}
    assert problems[code]["hint"].startswith(hint)
