"""Olivia's compute nodes reach the index through the proxy alone: what breaks off there goes on."""

from __future__ import annotations

import re

import pytest

from tests.twin import rootfs
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import python_image, ready, shadow
from tests.twin.test_overlay_image import RUN, Puller
from tests.twin.user import EXAMPLE

pytestmark = [pytest.mark.twin, pytest.mark.slow]

REFERENCE = "nvcr.io/nvidia/python:1.0"
PACKAGES = """
[environment]
packages = ["large-over-proxy"]
"""
SIZE = 30 << 20
WHEEL = "large_over_proxy-1.0-py3-none-any.whl"
MAKE = f"""
import os, pathlib, sys, zipfile
sys.path.insert(0, "{EXAMPLE}")
import wheels
made = wheels.wheel(pathlib.Path("/srv/index"), "large_over_proxy", "1.0")
with zipfile.ZipFile(made, "a") as archive:
    archive.writestr("large_over_proxy/noise.bin", os.urandom({SIZE}))
os.chmod(made, 0o644)
"""
CUT = f"""
for ((n = 0; n < 9000; n++)); do
    grep -q "GET /files/{WHEEL} " /run/twin/index.log && break
    sleep 0.05
done
pkill -x tinyproxy
sleep 5
tinyproxy -c /etc/tinyproxy.conf
"""
"""As soon as the download began the proxy is gone with all its connections, for five seconds."""


@pytest.fixture
def olivia(twin: Start) -> Twin:
    """Olivia, whose index has one package that takes a while."""
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    one = ready(twin("olivia"))
    python_image(one, REFERENCE)
    shadow(one)
    done = one.run("python3", "-c", MAKE)
    assert done.returncode == 0, done.stderr
    return one


def test_a_download_that_is_cut_goes_on_when_the_proxy_is_back(olivia: Twin) -> None:
    alice = Puller(olivia, "cut", reference=REFERENCE)
    text = RUN.replace("NAME", "cut").replace('"IMAGE"', f'"{REFERENCE}"\nname = "cut"')
    text = text.replace('["cat", "/marker"]', '["python", "-c", "import large_over_proxy as m; print(m)"]')
    alice.put("run.toml", text.replace("[environment.app", PACKAGES + "[environment.app"))
    spoil = f"echo '~GET./files/{WHEEL}$ short {SIZE // 2}' >>/run/twin/index.script"
    done = olivia.run("bash", "-c", f"{spoil}; ({CUT}) </dev/null >/dev/null 2>&1 &")
    assert done.returncode == 0, done.stderr
    alice.submit()
    found = alice.until("done")
    assert "/user-software/" in olivia.sh(f"cat {found['path']}/logs/train.log")
    rows = [row for row in olivia.run("cat", "/run/twin/index.log").stdout.splitlines() if WHEEL in row]
    log = olivia.sh(f"cat {found['path']}/logs/env.log")
    print("\n".join(rows), log)
    assert "Attempting to resume incomplete download" in log
    assert [n for row in rows for n in re.findall(r"bytes=(\d+)-", row) if int(n)], rows
