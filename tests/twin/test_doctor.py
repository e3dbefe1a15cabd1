"""`hpctrain doctor` on the five replicas: as they are, rebuilt from their capture, and after ten changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpctrain.doctor import together
from tests.twin import captured
from tests.twin.disagreements import BEFORE, CHANGES, CLOCK_PORT, SLOW_CLOCK
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import TORCH, Twin, torch_python
from tests.twin.services.inside import ready, shadow
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


def examined(user: User, seconds: int = 240, **env: str) -> dict[str, dict[str, Any]]:
    """Fact -> its line, of an examination that must end in time and write nothing.

    It takes five seconds on a quiet machine; these have other tests beside them.
    """
    before = user.twin.sh("find ~ -printf '%p %T@\\n' | sort", user=user.name)
    account = user.twin.site.overlay.account
    words = ("doctor", "--account", account, "--seconds", str(seconds), "--json")
    done = user.hpctrain(*words, timeout=seconds + 45, env={"HPCTRAIN_SITE": "", **env})
    assert done.returncode in (6, 7), done.stdout + done.stderr
    assert user.twin.sh("find ~ -printf '%p %T@\\n' | sort", user=user.name) == before
    told = json.loads(done.stdout)
    assert told["cluster"] == user.twin.cluster
    assert all(row["found"] for row in told["findings"]), told
    return {f"{row['area']}: {row['fact']}": row for row in told["findings"]}


def differing(lines: dict[str, dict[str, Any]]) -> set[str]:
    """The facts that the machine contradicts, without their areas."""
    return {row["fact"] for row in lines.values() if row["verdict"] == "differs"}


def site(start: Start, name: str, accounting: Callable[[], Twin] | None = None) -> User:
    """Somebody on this twin, whose indexes are the twin's own."""
    twin = ready(accounting() if accounting else start(name))
    shadow(twin)
    return User(twin, folder="doctor")


def test_compute_nodes_of_isambard(own_twin: Start, tmp_path: Path) -> None:
    """Two of them in one job; its GPUs answer nothing and its memory is that of one computer."""
    user = site(own_twin, "isambard")
    account = user.twin.site.overlay.account
    words = ("doctor", "--account", account, "--seconds", "240", "--job", "-N", "2", "--json")
    python = ("--python", f"{TORCH}/bin/python") if torch_python() else ()
    done = user.hpctrain(*words, *python, timeout=600, env={"HPCTRAIN_SITE": ""})
    told = json.loads(done.stdout)
    assert "findings" in told, done.stdout + done.stderr
    rows = {row["fact"]: row for row in told["findings"] if row["area"] == "compute nodes"}
    assert rows["nodes that answered"]["verdict"] == "ok", done.stdout
    assert rows["version of plugin"]["verdict"] == "ok"
    assert rows["version of plugin"]["found"].startswith("1.8.1 (/tools/brics/apps/aws-ofi-nccl/1.8.1/lib/")
    assert rows["version of libfabric"]["verdict"] == "ok"
    assert any(fact.startswith("plugin-all-to-all: plugin 1.8.1") for fact in rows)
    assert rows["the clock beside the login node's"]["verdict"] == "ok"
    assert rows["role nodelocal"]["verdict"] == "ok"
    engine = "gloo" if torch_python() else "sockets"
    assert rows[together.VALUES]["found"].endswith(f"over {engine}"), done.stdout
    assert rows[together.BANDWIDTH]["found"].endswith(f"over {engine}"), done.stdout
    _rebuilt(user, tmp_path)  # the capture of somebody who has run something here


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_the_site_as_it_is_its_capture_and_ten_changes(
    name: str, own_twin: Start, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Nothing is invented, a twin of the capture answers alike, and what changes then is found, all of it."""
    accounting = (lambda: request.getfixturevalue("accounted")) if name == "frontier" else None
    user = site(own_twin, name, accounting)
    assert differing(examined(user)) == BEFORE[name]
    _rebuilt(user, tmp_path)
    changes = CHANGES[name]
    assert len(changes) >= 10
    user.twin.write("/run/twin/clock.py", SLOW_CLOCK, user="root")
    for one in changes:
        if one.fault:
            fault(user.twin, *one.fault)
        else:
            _root(user.twin, one.line)
    lines = examined(user, HF_ENDPOINT=f"http://127.0.0.1:{CLOCK_PORT}")
    seeded = frozenset().union(*(one.differs for one in changes))
    assert differing(lines) - BEFORE[name] == seeded
    silent = {row["fact"] for row in lines.values() if row["verdict"] == "could not be asked"}
    assert frozenset().union(*(one.silent for one in changes)) <= silent
    unseen = [one for one in changes if not one.differs | one.silent]
    assert unseen == [], "each change has a line of its own"


def _rebuilt(user: User, folder: Path) -> None:
    """The twin's capture, a twin of it, and what that answers to the same questions."""
    path = folder / "capture.json"
    path.write_text(captured.ask(user.twin))
    first = captured.read(path)
    words = ("clusters", user.twin.cluster, "--against", _put(user, path), "--json")
    report = user.twin.run("hpctrain", *words, user="alice")
    contradicted = {row["fact"] for row in json.loads(report.stdout)["facts"]}
    assert contradicted <= BEFORE[user.twin.cluster], report.stdout
    copy = Twin(f"{user.twin.name}-capture", user.twin.cluster, path).up(tied=True)
    try:
        shadow(ready(copy))
        assert captured.differing(first.answers, captured.again(copy).answers) == []
    finally:
        copy.down()


def _put(user: User, path: Path) -> str:
    user.put("capture.json", path.read_text())
    return f"{user.folder}/capture.json"


def test_a_controller_that_hangs_is_a_line(own_twin: Start) -> None:
    user = site(own_twin, "isambard")
    fault(user.twin, "ctld-freeze", "50")
    lines = examined(user, seconds=45)
    silent = {fact for fact, row in lines.items() if row["verdict"] == "could not be asked"}
    assert {"scheduler: partitions", "scheduler: nodes"} <= silent
    assert lines["network: the hub, https://huggingface.co"]["verdict"] == "ok"


def _root(twin: Twin, line: str) -> None:
    done = twin.run("bash", "-c", line)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
