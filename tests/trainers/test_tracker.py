"""W&B hears of a training where nodes reach the network and the key is given; the plan says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.cli.show.plan_numbers import numbers_of
from hpctrain.model.plan import Survey
from hpctrain.session import Session

RUN = """
name = "mine"
cluster = "{cluster}"
secrets = {secrets}
[resources]
gpus = 1
time = "15m"
account = "g1"
[environment]
use = ""
[train]
use = "{trainer}"
{options}
"""
OWN = '[train.command]\nargv = ["python", "train.py"]\nranks = "once"\n'
TRL = '[train.trl]\nwandb_project = "mine"\nmodel = "/m"\ntrain_dataset = "/d"\n'
KEY = '["wandb"]'


def told(folder: Path, cluster: str, secrets: str, trainer: str, options: str) -> str:
    """What the plan says of W&B, which is what the training step gets."""
    run = folder / "run.toml"
    run.write_text(RUN.format(cluster=cluster, secrets=secrets, trainer=trainer, options=options))
    plan = Session(run, environ={"USER": "ada", "HOME": str(folder)}).plan()
    train = plan.step_named("train")
    assert train is not None
    values = [var.value for var in train.around.env if var.name == "WANDB_MODE"]
    said = dict(numbers_of(plan, Survey(is_on_cluster=False))).get("W&B", "")
    assert [said.partition(":")[0]] == (values or [""])
    return said


@pytest.mark.parametrize("cluster", ["olivia", "alps", "isambard", "local"])
@pytest.mark.parametrize(("trainer", "options"), [("command", OWN), ("trl", TRL)])
def test_with_the_key_and_a_network_it_is_live(
    tmp_path: Path, cluster: str, trainer: str, options: str
) -> None:
    said = told(tmp_path, cluster, KEY, trainer, options)
    assert said == "online: the key is given, and nodes reach the network"


@pytest.mark.parametrize("cluster", ["frontier", "leonardo"])
@pytest.mark.parametrize(("trainer", "options"), [("command", OWN), ("trl", TRL)])
def test_without_a_network_it_waits(tmp_path: Path, cluster: str, trainer: str, options: str) -> None:
    said = told(tmp_path, cluster, KEY, trainer, options)
    assert said.startswith("offline: compute nodes have no internet")


def test_without_the_key_it_waits_where_the_trainer_logs(tmp_path: Path) -> None:
    said = told(tmp_path, "olivia", "[]", "trl", TRL)
    assert said == 'offline: the key is not given, secrets = ["wandb"]: `hpctrain sync` sends it'
    assert told(tmp_path, "olivia", "[]", "command", OWN) == ""


def test_the_run_file_wins(tmp_path: Path) -> None:
    own = f'{OWN}[env]\nWANDB_MODE = "offline"\n'
    assert told(tmp_path, "olivia", KEY, "command", own) == "offline: the run file sets it"
