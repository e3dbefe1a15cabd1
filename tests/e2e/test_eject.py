"""The ejected scripts do what the submitted run did, without hpctrain."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.ejected import carried_out, metrics, poisoned
from tests.e2e.product import Product, hidden_in, small

LEARN = (
    'awk \'BEGIN { srand(7); for (i = 1; i <= 20; i++) printf "{\\"step\\":%d,\\"loss\\":%.6f}\\n", i, '
    '6 / i + rand() / 100 }\' >"$HPC_RUN/metrics.jsonl"; cat {assets.seed}'
)
SEED = '\n[assets]\nseed = { command = ["bash", "-c", "echo $RANDOM >$WORK"] }\n'


def test_local_scripts_give_the_same_metrics(here: Product, tmp_path: Path) -> None:
    here.write(small(LEARN, seed=SEED))
    title = here("submit", "run.toml", "--wait").stdout.strip()
    script = here("eject", "run.toml", "-o", "out").stdout.strip()
    said = carried_out(script, poisoned(tmp_path))
    assert "train job" in said
    mine, theirs = here.run_path(title), here.folder / "out"
    assert len(metrics(mine)) == 20
    assert metrics(theirs) == metrics(mine)
    assert (theirs / "logs/train.log").read_text() == (mine / "logs/train.log").read_text()


def test_local_scripts_make_what_is_not_there(here: Product, tmp_path: Path) -> None:
    here.write(small(LEARN, seed=SEED))
    script = here("eject", "run.toml", "-o", "out").stdout.strip()
    carried_out(script, poisoned(tmp_path))
    assert len(metrics(here.folder / "out")) == 20
    assert here("plan", "run.toml").stdout.count("exists") == 1


def test_what_is_finished_ends_at_once_when_it_is_started_again(here: Product, tmp_path: Path) -> None:
    here.write(small('echo trained >>"$HPC_RUN/trainings"'))
    script = here("eject", "run.toml", "-o", "out").stdout.strip()
    environ = poisoned(tmp_path)
    carried_out(script, environ)
    carried_out(script, environ, limit=30)
    assert (here.folder / "out/trainings").read_text() == "trained\n"
    told = here.json("status", "out")
    assert (told["run"], told["state"]) == (str(here.folder / "out"), "done")


def test_an_ejected_run_that_fails_says_so(here: Product, tmp_path: Path) -> None:
    here.write(small("echo broken; exit 3"))
    script = here("eject", "run.toml").stdout.strip()
    done = subprocess.run(
        ["bash", script], env=poisoned(tmp_path) | {"HPC_WAIT": "1", "HPC_POLL": "1"}, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 8
    assert "step train ended badly: logs/train.log" in done.stderr
    folder = str(Path(script).parent)
    told = here.json("status", folder)
    assert (told["run"], told["state"], told["steps"][0]["exit_code"]) == (folder, "failed", 3)
    assert here("diagnose", folder, code=None).stdout.startswith(f"{folder} on local   FAILED")


def test_an_ejected_run_takes_its_token_from_the_shell(here: Product, tmp_path: Path) -> None:
    here.write('secrets = ["my-hub"]\n' + small('echo "${#MY_HUB}"'))
    script = here("eject", "run.toml").stdout.strip()
    environ = poisoned(tmp_path)
    refused = subprocess.run(["bash", script], env=environ, capture_output=True, text=True, timeout=60)
    assert refused.returncode
    assert refused.stderr == "the run needs the token my-hub, which is in none of: $MY_HUB\n"
    carried_out(script, environ | {"MY_HUB": "t0ken-t0ken"})
    assert (here.folder / "small-local/logs/train.log").read_text() == "11\n"
    assert hidden_in("t0ken-t0ken", [here.home, here.folder]) == []


def test_eject_never_overwrites(here: Product) -> None:
    here.write(small("true"))
    here("eject", "run.toml", "-o", "out")
    said = here("eject", "run.toml", "-o", "out", code=2).stderr
    assert said.startswith(f"error[exists]: {here.folder}/out exists and is not empty")


@pytest.mark.slurm
def test_slurm_scripts_give_the_same_metrics(alice: Product) -> None:
    learn = LEARN.replace("{assets.seed}", "{assets.first}")
    seed = '\n[assets]\nfirst = { command = ["x"] }\nlater = { command = ["x"] }\n'
    alice.write(small(learn, seed=seed).replace('"local"', '"rig"'))
    script = alice("eject", "run.toml", "-o", "out").stdout.strip()
    said = carried_out(script, poisoned(alice.home), alice.before)
    assert "waiting for first" in said  # a step of the login node stands behind its job
    ejected = metrics(alice.folder / "out")
    title = alice("submit", "run.toml", "--wait").stdout.strip()
    assert metrics(alice.run_path(title)) == ejected
    assert len(ejected) == 20


def test_what_stays_behind_is_said(here: Product) -> None:
    """Scripts for another machine name the files that only this one has."""
    here.write("print(1)\n", "mine/train.py")
    here.write(small("true", code='\n[code]\npath = "mine"\n', on='\n[on.frontier.environment]\nuse = ""\n'))
    said = here("eject", "--on", "frontier", "--account", "abc123", "--out", "far").stderr
    assert f"the scripts read {here.folder}/mine: copy it to the same place on frontier" in said
    assert "copy it" not in here("eject", "--out", "near").stderr


def test_two_folders_of_one_name_never_share_checkpoints(here: Product, tmp_path: Path) -> None:
    """`my-run/scripts` in two projects; a folder that moves keeps its own, a copy begins anew."""
    save = 'touch "$HPC_CHECKPOINTS/$((1 + $(ls "$HPC_CHECKPOINTS" | wc -l)))"; ls -x "$HPC_CHECKPOINTS"'
    here.write(small(save))
    environ = poisoned(tmp_path)

    def trained(folder: str) -> str:
        """What was there at the end of another attempt in this folder."""
        (here.folder / folder / "steps/train/finished").unlink(missing_ok=True)
        carried_out(str(here.folder / folder / "run.sh"), environ)
        return (here.folder / folder / "logs/train.log").read_text().splitlines()[-1]

    for project in ("one", "other"):
        here("eject", "run.toml", "-o", f"{project}/my-run/scripts")
    assert [trained("one/my-run/scripts"), trained("one/my-run/scripts")] == ["1", "1  2"]
    assert trained("other/my-run/scripts") == "1"
    (here.folder / "one/my-run").rename(here.folder / "moved")
    assert trained("moved/scripts") == "1  2  3"
    shutil.copytree(here.folder / "moved/scripts", here.folder / "copy")
    assert trained("copy") == "1"
    assert trained("moved/scripts") == "1  2  3  4"
    here("eject", "run.toml", "-o", "one/my-run/scripts")  # anew where the first one was
    assert trained("one/my-run/scripts") == "1"
