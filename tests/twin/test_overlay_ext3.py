"""The overlay that NRIS documents on Olivia: an ext3 file, made, filled and entered by ordinary users."""

from __future__ import annotations

from typing import Any

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.test_overlay import OVERLAYS, POOL, Trainee, flipped, prepared
from tests.twin.user import EXAMPLE

pytestmark = [pytest.mark.twin, pytest.mark.slow]

SIZE_MB = 96
LARGE = f"""
import os, sys
sys.path.insert(0, "{EXAMPLE}")
import pathlib, zipfile, wheels
made = wheels.wheel(pathlib.Path(sys.argv[1]), "large", "1.0")
with zipfile.ZipFile(made, "a") as archive:
    archive.writestr("large/noise.bin", os.urandom(80 << 20))
os.chmod(made, 0o644)
"""


def trainee(twin: Twin, name: str = "alice", size_mb: int = SIZE_MB) -> Trainee:
    """Somebody who wants that kind, under the name `official`."""
    asked = f'name = "official"\noverlay = "ext3"\nsize_mb = {size_mb}\nfind_links'
    return Trainee(twin, name, folder="official", find_links=asked)


@pytest.fixture(scope="module")
def first(twin: Start) -> tuple[Trainee, dict[str, Any]]:
    """Alice after her first run."""
    alice = trainee(prepared(twin("olivia")))
    return alice, alice.trained()


def lies(twin: Twin) -> list[str]:
    return twin.sh(f"cd {OVERLAYS} && ls -d official_* 2>/dev/null || true").split()


def test_it_is_made_in_a_job_and_training_is_inside(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, found = first
    prefix, executable, version, env = alice.said(found)
    assert (prefix, executable, version) == ("/user-software", "/user-software/bin/python", "1.0")
    assert env["AWKWARD"].startswith("a b,c;d=")
    (name,) = lies(alice.twin)
    assert name.endswith("_arm64.img")
    kind = alice.twin.sh(f"file -bL {OVERLAYS}/{name}")
    assert "ext3 filesystem data" in kind
    assert int(alice.twin.sh(f"stat -Lc %s {OVERLAYS}/{name}")) == SIZE_MB << 20


def test_another_member_enters_the_same_file(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    before = alice.twin.sh(f"sha256sum {OVERLAYS}/official_*.img")
    bob = trainee(alice.twin, "bob")
    assert bob.made()["env"] == "exists"
    found = bob.trained()
    assert {row["step"]: row.get("job") for row in found["steps"]}["env"] is None
    assert bob.said(found)[0] == "/user-software"
    assert alice.twin.sh(f"sha256sum {OVERLAYS}/official_*.img") == before


def test_what_training_writes_there_is_refused(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    line = "touch /user-software/mine 2>/dev/null && echo written || echo refused"
    done = alice.hpctrain("exec", "run.toml", "--", "bash", "-c", line)
    assert done.stdout == "refused\n", done.stderr


def test_a_flipped_bit_is_refused_and_built_anew(first: tuple[Trainee, dict[str, Any]]) -> None:
    alice, _ = first
    (name,) = lies(alice.twin)
    flipped(alice, name)
    assert name in lies(alice.twin)


def test_one_that_is_too_small_ends_the_build_and_publishes_nothing(
    first: tuple[Trainee, dict[str, Any]],
) -> None:
    twin = first[0].twin
    before = lies(twin)
    small = trainee(twin, size_mb=64)
    twin.sh(f"python3 -c '{LARGE}' {POOL}/wheels")
    small.submit("--set", 'environment.packages=["alpha", "large"]')
    found = small.until("failed", seconds=90)
    assert "No space left on device" in twin.sh(f"cat {found['path']}/logs/env.log")
    assert lies(twin) == before
