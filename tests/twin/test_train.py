"""One run file trains on every twin, as an ordinary user, on two nodes."""

from __future__ import annotations

import pytest

from tests.twin import site_file, slurmconf
from tests.twin.fixtures import Start
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


WHO = [*((name, "alice") for name in site_file.names()), ("isambard", "bob")]
"""The second user of a project finds what the first one left: folders, an asset, checkpoints."""


@pytest.mark.parametrize(("name", "who"), WHO)
def test_the_example_trains(name: str, who: str, twin: Start, torch: None) -> None:
    user = User(twin(name), who)
    if who != "alice":
        _accept(user, "alice")
    user.submit()
    found = user.until("done", seconds=240)
    assert found["cluster"] == name
    assert found["metrics"]["step"] == 6
    assert "2 ranks; rank 0 on cpu" in user.log()
    job = user.twin.sh(f"scontrol show job {user.step(found)['job']}")
    compute = {host.name for host in user.twin.site.hosts if slurmconf.gpus(user.twin.site, host)}
    nodes = next(word for word in job.split() if word.startswith("NodeList=")).partition("=")[2]
    assert set(user.twin.sh(f"scontrol show hostnames {nodes}").split()) == compute
    assert f"UserId={who}({site_file.USERS[who]})" in job


def _accept(user: User, owner: str) -> None:
    """What the refusal proposes: this owner, who made the folder of the project, is accepted."""
    on = ("--on", user.twin.cluster, "--account", user.twin.site.overlay.account)
    refused = user.hpctrain("submit", "run.toml", *on)
    assert (refused.returncode, f"belongs to {owner}" in refused.stderr) == (2, True), refused.stderr
    tables = [
        f'[cluster.{user.twin.cluster}.storage.{role}]\nowners = ["{owner}"]\n' for role in ("env", "assets")
    ]
    config = f"{user.twin.site.home(user.name)}/.config/hpctrain"
    user.twin.sh(f"mkdir -p {config}", user=user.name)
    user.twin.write(f"{config}/settings.toml", "".join(tables), user=user.name)
