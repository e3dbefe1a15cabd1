"""Templates of the facts become paths on the cluster, and words elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.words import Join, Var
from hpctrain.run.prepare.bind import bind
from hpctrain.run.this_computer import is_here
from tests.conftest import ROOT

ADA = {"USER": "ada", "HOME": "/home/ada", "SCRATCH": "/scratch/ada"}


def with_storage(cluster: Cluster, **paths: str) -> Cluster:
    storage = {
        role: Storage(path=path, source="doc", node_local=role == "nodelocal") for role, path in paths.items()
    }
    return attrs.evolve(cluster, storage=storage, name="toy")


def charged(account: str) -> RunSpec:
    return RunSpec(name="r", cluster="toy", resources=Resources(account=account))


ORION = "/lustre/orion/{account}/scratch/{user}/x"


def test_on_the_cluster_roots_are_paths(cluster: Cluster) -> None:
    toy = with_storage(cluster, env=ORION, data="${SCRATCH}/data", home="{home}", tmp="/tmp/{uid}")
    bound = bind(toy, charged("gen150"), ADA, on_cluster=True)
    assert bound.roots == {
        "env": "/lustre/orion/gen150/scratch/ada/x",
        "data": "/scratch/ada/data",
        "home": "/home/ada",
        "tmp": f"/tmp/{os.getuid()}",
    }
    assert (bound.user, bound.account) == ("ada", "gen150")


def test_elsewhere_what_depends_on_the_user_stays_a_variable(cluster: Cluster) -> None:
    toy = with_storage(
        cluster, env=ORION, data="${SCRATCH}/data", home="{home}", tmp="/tmp/{uid}/", opt="/opt/x"
    )
    bound = bind(toy, charged(""), ADA, on_cluster=False)
    assert bound.roots == {
        "env": Join("/lustre/orion/", Var("HPC_ACCOUNT"), "/scratch/", Var("USER"), "/x"),
        "data": Join(Var("SCRATCH"), "/data"),
        "home": Var("HOME"),
        "tmp": Join("/tmp/", Var("UID"), "/"),
        "opt": "/opt/x",
    }
    assert bound.python == "python3"
    known = bind(toy, charged("gen150"), ADA, on_cluster=False)
    assert known.roots["env"] == Join("/lustre/orion/gen150/scratch/", Var("USER"), "/x")


def test_the_folder_of_a_project_whose_account_is_called_otherwise(cluster: Cluster) -> None:
    toy = with_storage(cluster, env="/cfs/{project}/{account}")
    toy = attrs.evolve(toy, policy=attrs.evolve(toy.policy, project="(m[0-9]+)(?:_g)?"))
    for on_cluster in (True, False):
        assert bind(toy, charged("m12_g"), ADA, on_cluster=on_cluster).roots == {"env": "/cfs/m12/m12_g"}
    late = bind(toy, charged(""), ADA, on_cluster=False).roots["env"]
    assert late == Join("/cfs/", Var("HPC_PROJECT"), "/", Var("HPC_ACCOUNT"))
    with pytest.raises(ConfigError) as caught:
        bind(toy, charged(""), ADA, on_cluster=True)
    assert {p.where for p in caught.value.problems} == {"resources.account"}


def test_a_nodes_own_storage_is_bound_in_the_job(cluster: Cluster) -> None:
    toy = with_storage(cluster, nodelocal="${TMPDIR}/{user}")
    bound = bind(toy, charged(""), ADA | {"TMPDIR": "/login/tmp"}, on_cluster=True)
    assert bound.roots["nodelocal"] == Join(Var("TMPDIR"), "/ada")


def test_a_missing_account_says_what_to_type(cluster: Cluster) -> None:
    with pytest.raises(ConfigError) as caught:
        bind(with_storage(cluster, env=ORION), charged(""), ADA, on_cluster=True)
    (problem,) = caught.value.problems
    assert problem.code == "account"
    assert problem.message == f"no account given, and env of toy lies in {ORION}"
    assert problem.hint == "hpctrain submit RUN_FILE --account ACCOUNT      (or `account` in settings)"


def test_all_that_is_wrong_is_said_at_once_but_only_for_used_roles(cluster: Cluster) -> None:
    toy = with_storage(cluster, env="${NOT_SET}/x", data="relative", runs="/a/../b", opt="/opt")
    with pytest.raises(ConfigError) as caught:
        bind(toy, charged(""), ADA, on_cluster=True)
    assert [p.where for p in caught.value.problems] == [
        "cluster.toy.env",
        "cluster.toy.data",
        "cluster.toy.runs",
    ]
    assert "$NOT_SET is not set here" in caught.value.problems[0].message
    assert bind(toy, charged(""), ADA, roles={"opt"}, on_cluster=True).roots == {"opt": "/opt"}


@pytest.mark.parametrize("root", ["/a:b", "$HOME/x", "/scratch/<project>", "/data/${SCRATCH}"])
def test_a_root_with_what_no_path_of_ours_may_hold(cluster: Cluster, root: str) -> None:
    with pytest.raises(ConfigError, match="must be a plain absolute path"):
        bind(with_storage(cluster, env=root), charged(""), ADA | {"SCRATCH": "a:b"}, on_cluster=True)


def test_values_of_variables_cannot_climb(cluster: Cluster) -> None:
    toy = with_storage(cluster, env="/data/${SCRATCH}")
    with pytest.raises(ConfigError, match="must be a plain absolute path"):
        bind(toy, charged(""), ADA | {"SCRATCH": "../../etc"}, on_cluster=True)


def test_the_users_own_templates_win(cluster: Cluster) -> None:
    toy = with_storage(cluster, env=ORION)
    bound = bind(toy, charged(""), ADA, {"env": "~/env", "extra": "/x/{user}"}, on_cluster=True)
    assert bound.roots == {"env": "/home/ada/env", "extra": "/x/ada"}


def test_a_cluster_is_known_by_its_host_names(cluster: Cluster) -> None:
    toy = attrs.evolve(cluster, detect=(r"^login\d+\.toy\.org$", r"^uan\d+"))
    assert is_here(toy, "login07.toy.org")
    assert is_here(toy, "uan01")
    assert not is_here(toy, "login07.toy.org.evil.com")
    assert not is_here(toy)
    assert is_here(attrs.evolve(toy, detect=(".*",)))
    assert is_here(attrs.evolve(toy, name="local"), "anything")


def publish(link: Path) -> None:
    """As a job publishes a folder."""
    script = f'. {ROOT}/core/hpctrain/render/publish.sh; hpc_begin {link}; mkdir "$WORK"; hpc_publish {link}'
    subprocess.run(["bash", "-c", script], check=True)


def test_a_survey_sees_links_that_resolve_and_free_space(cluster: Cluster, tmp_path: Path) -> None:
    from hpctrain.model.plan import Plan, PlannedStep, Surround
    from hpctrain.model.step import Artifact, Step
    from hpctrain.run.prepare.survey import survey

    names = ("there", "dangling", "missing", "file")
    made = {n: Artifact(name=n, role="env", inputs={}, arch="any", folder="sub") for n in names}
    steps = [Step(name=n, commands=(), makes=a) for n, a in made.items()] + [Step(name="train", commands=())]
    planned = tuple(PlannedStep(step=s, here=True, around=Surround()) for s in steps)
    toy = with_storage(cluster, env=str(tmp_path), far=str(tmp_path / "not" / "yet"), nodelocal="${TMPDIR}")
    plan = Plan(run=charged(""), cluster=toy, pins=(), steps=planned)
    binding = bind(toy, charged(""), ADA, on_cluster=True)
    publish(tmp_path / made["there"].loc.path)
    (tmp_path / "sub").chmod(0o700)
    (tmp_path / made["dangling"].loc.path).symlink_to("purged")
    (tmp_path / made["file"].loc.path).write_text("")
    said = survey(plan, binding, on_cluster=True)
    assert said.artifact_exists == {"there": True, "dangling": False, "missing": False, "file": False}
    assert said.free_gb.keys() == {"env", "far"}
    free = os.statvfs(tmp_path)
    assert said.free_gb["far"] == pytest.approx(free.f_bavail * free.f_frsize / 1e9, rel=0.2)
    assert said.at.endswith("Z")
    elsewhere = survey(plan, binding, on_cluster=False)
    assert (elsewhere.is_on_cluster, dict(elsewhere.artifact_exists), dict(elsewhere.free_gb)) == (
        False,
        {},
        {},
    )
