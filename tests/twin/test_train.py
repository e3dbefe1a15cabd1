"""One run file trains on every twin, as an ordinary user, on two nodes."""

from __future__ import annotations

import pytest

from tests.twin import overlay
from tests.twin.fixtures import Start
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


WHO = [*((name, "alice") for name in overlay.names()), ("isambard", "bob")]
"""The second user of a project finds what the first one left: folders, an asset, checkpoints."""


@pytest.mark.parametrize(("name", "who"), WHO)
def test_the_example_trains(name: str, who: str, twin: Start, torch: None) -> None:
    user = User(twin(name), who)
    user.submit()
    found = user.until("done", seconds=240)
    assert found["cluster"] == name
    assert found["metrics"]["step"] == 6
    assert "2 ranks; rank 0 on cpu" in user.log()
    job = user.twin.sh(f"scontrol show job {user.step(found)['job']}")
    compute = {host.name for host in user.twin.site.hosts if host.place.name == "compute"}
    nodes = next(word for word in job.split() if word.startswith("NodeList=")).partition("=")[2]
    assert set(user.twin.sh(f"scontrol show hostnames {nodes}").split()) == compute
    assert f"UserId={who}({overlay.USERS[who]})" in job
