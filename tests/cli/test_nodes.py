"""`hpctrain nodes`: what failed is listed, added, forgiven; the plan says it before the queue."""

from __future__ import annotations

import json
import os
import time

from hpctrain_job.bad_nodes import NodeFinding, Place
from tests.e2e.product import Product, small


def test_a_node_is_avoided_and_forgiven(here: Product) -> None:
    assert here("nodes", "--on", "local").stdout == "no node of local is avoided\n"
    options = ("--why", "NVLink errors", "--for", "3d", "--on", "local")
    said = here("nodes", "avoid", "nid001", "nid002", *options).stdout
    assert said == "nid001 is avoided\nnid002 is avoided\n"
    rows = here("nodes", "--on", "local").stdout.splitlines()
    assert {row.split()[0] for row in rows} == {"NODE", "nid001", "nid002"}
    assert "NVLink errors" in rows[1]
    document = json.loads(here("nodes", "--json", "--on", "local").stdout)
    assert {entry["node"] for entry in document["nodes"]} == {"nid001", "nid002"}
    (finding,) = document["nodes"][0]["findings"]
    assert (finding["kind"], finding["evidence"]) == ("named", "NVLink errors")
    # `until` is a whole second, the nearest one
    assert 2.9 * 86400 < document["nodes"][0]["until"] - time.time() < 3 * 86400 + 1
    assert here("nodes", "forgive", "nid001", "--on", "local").stdout == "nid001 is forgiven\n"
    assert [
        entry["node"] for entry in json.loads(here("nodes", "--json", "--on", "local").stdout)["nodes"]
    ] == ["nid002"]


def test_what_is_no_node_or_no_time_is_refused(here: Product) -> None:
    for argv in (("avoid", "nid[1-9]"), ("forgive", "a,b"), ("avoid", "nid001", "--for", "soon")):
        assert here("nodes", *argv, "--on", "local", code=2).stderr.startswith("error[usage]: ")
    done = here("nodes", "avoid", "nid001", "--for", "60d", "--on", "local", code=2)
    assert "--for 60d: no node is avoided for longer" in done.stderr
    assert "--for 30d" in done.stderr
    assert json.loads(here("nodes", "--json", "--on", "local").stdout)["nodes"] == []


def test_of_another_cluster_nothing_is_said_nor_written_here(here: Product) -> None:
    for argv in ((), ("avoid", "nid001"), ("forgive", "nid001")):
        assert here("nodes", *argv, "--on", "alps", code=6).stderr.startswith("error[not-here]: ")
    assert not list(here.home.rglob("nodes-alps-*"))


def test_what_cannot_be_read_is_said(here: Product) -> None:
    here("nodes", "avoid", "nid001", "--on", "local")
    (folder,) = here.home.rglob(f"nodes-local-{os.geteuid()}")
    (folder / "x.json").write_text("{")
    done = here("nodes", "--on", "local")
    assert "nid001" in done.stdout
    assert "x.json is not read: " in done.stderr


def test_the_plan_says_it_before_the_queue(here: Product) -> None:
    """Nobody keeps a job of one computer away from it."""
    here.write(small("true"))
    here("nodes", "avoid", "nid001", "--on", "local")
    (folder,) = here.home.rglob(f"nodes-local-{os.geteuid()}")
    place = Place(str(folder).removesuffix(str(os.geteuid())))
    place.add([NodeFinding("nid002", "hung", "rank 3", time.time())])
    said = here("plan", "run.toml").stdout
    assert "used, though they failed, for local keeps no job away from nodes: nid00" in said
    assert "hpctrain nodes" in said
    survey = json.loads(here("plan", "run.toml", "--json").stdout)["survey"]
    assert sorted(survey["bad_nodes"]) == ["nid001", "nid002"]
