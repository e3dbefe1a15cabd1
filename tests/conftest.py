"""What every test gets: nothing of the caller's environment leaks in, and nothing leaks out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What hypothesis measures is the machine, which other tests share.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# A shell that starts us in the background ignores SIGINT for us and all that we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["hpctrain.testing.plugin", "tests.canary", "tests.report"]
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _environment_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty home, no settings of the caller; a test that changes os.environ for good fails.

    Not through the test's own `monkeypatch`: that one must be undone before we look.
    """
    with pytest.MonkeyPatch.context() as own:
        own.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "HPCTRAIN_SETTINGS", "HPCTRAIN_SITE", "NO_COLOR"):
            own.delenv(name, raising=False)
        before = dict(os.environ)
        yield
        changed = {k for k in before.keys() ^ os.environ.keys() if not k.startswith("PYTEST")}
    assert not changed, f"the test changed os.environ: {sorted(changed)}"


def needs(capability: str, there: bool, reason: str) -> None:
    """Skip with a stated reason, or fail where `HPCTRAIN_REQUIRE` says the capability must be there."""
    if there:
        return
    required = os.environ.get("HPCTRAIN_REQUIRE", "").replace(",", " ").split()
    if capability in required:
        pytest.fail(f"{capability} is required here but: {reason}")
    pytest.skip(reason)
