"""The largest queue of the largest machine: nodes that are powered down, a controller that is real."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


@pytest.fixture(scope="module")
def large(twin: Start) -> Iterator[Twin]:
    """Frontier with all the nodes of its largest bin."""
    twin("frontier")
    one = Twin(f"large-{os.getpid()}", "frontier")
    biggest = max(queue.max_nodes or 0 for queue in one.site.cluster.queue)
    assert biggest >= 9_400
    yield one.up(tied=True, powered_down=biggest)
    one.down()


def submitted(user: User, nodes: int, time: str = "1h") -> tuple[int, str]:
    """Submit a run of so many nodes; how that ended and what was said."""
    sets = ("--set", f"resources.nodes={nodes}", "--set", f'resources.time="{time}"')
    account = ("--account", user.twin.site.overlay.account)
    done = user.hpctrain("submit", "run.toml", *account, *sets)
    return done.returncode, done.stdout + done.stderr


def test_the_largest_queue_is_validated_and_accepted(large: Twin) -> None:
    user = User(large)
    user.put("run.toml", (EXAMPLE / "wait.toml").read_text())
    biggest = max(queue.max_nodes or 0 for queue in large.site.cluster.queue)
    code, said = submitted(user, biggest, "12h")
    assert code == 0, said
    found = user.status()
    assert found["state"] in ("queued", "running")
    job = user.step(found)["job"]
    assert f"NumNodes={biggest}" in large.sh(f"scontrol show job {job}")
    user.hpctrain("cancel")
    code, said = submitted(user, biggest + 1)
    assert code != 0
    assert "Traceback" not in said


def test_a_plan_costs_the_same_for_all_nodes(large: Twin) -> None:
    user = User(large, folder="cost")
    user.put("run.toml", (EXAMPLE / "wait.toml").read_text())

    def cost(nodes: int) -> float:
        line = f"TIMEFORMAT='%U %S'; time hpctrain plan run.toml --set resources.nodes={nodes} >/dev/null"
        times = []
        for _ in range(3):
            done = large.run("bash", "-c", f"cd {user.folder} && {line}", user="alice")
            times.append(sum(map(float, done.stderr.splitlines()[-1].split())))
        return min(times)

    one, many = cost(1), cost(9_400)
    print(f"plan: {one:.2f} s for one node, {many:.2f} s for 9,400")
    assert many < one * 1.25 + 0.05


def test_the_start_of_9_400_nodes_is_predicted(large: Twin) -> None:
    """Eight ranks a node, as on the machine itself: the twin's site file is not asked."""
    user = User(large, folder="start")
    user.put("run.toml", (EXAMPLE / "wait.toml").read_text())
    words = ("plan", "run.toml", "--set", "resources.nodes=9400", "--set", 'resources.time="12h"')
    user.put("site.toml", "")
    own = {"HPCTRAIN_SITE": f"{user.folder}/site.toml"}
    said = user.hpctrain(*words, "--account", large.site.overlay.account, env=own)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "75,200 GPUs" in said.stdout or "75200 GPUs" in said.stdout
    assert "from a prefix on the shared file system" in said.stdout
    page = user.hpctrain(*words, "--explain", "startup", env=own).stdout
    assert "9400 nodes, 8 ranks each" in page
    for way in ("shared", "image", "broadcast"):
        assert f"{way} by nodes" in page
    assert "broadcast" in page.partition("shortest")[2].splitlines()[0]
