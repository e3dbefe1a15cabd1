"""`hpctrain doctor` on two replicas, before and after the site changed: all is found, nothing invented.

What a twin is not (its Slurm is another version, it has two nodes) differs before, too, and is named here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready, shadow
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

MODULES = "/twin/modulefiles"
SLOW_CLOCK = """\
import http.server, email.utils, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response_only(200)
        self.send_header("Date", email.utils.formatdate(time.time() - 600, usegmt=True))
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8099), Page).serve_forever()
"""
FRONTIER = {"container engine apptainer", "version of slurm", "hardware.nodes"}
"""Of the twin: Debian's Apptainer and Slurm, two nodes."""
ISAMBARD = {"architecture of the login node", "hardware.nodes"}
"""Of the twin: x86_64, two nodes."""


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


def test_frontier_as_it_is_and_after_ten_changes(twin: Start, accounted: Twin) -> None:
    user = site(twin, "frontier", lambda: accounted)
    assert differing(examined(user)) == FRONTIER
    one = user.twin
    _root(one, "scontrol update partitionname=extended maxtime=6:00:00 maxnodes=32")
    _root(one, "sacctmgr -i modify qos debug set MaxWall=01:00:00 MaxSubmitJobsPerUser=2")
    _root(one, f"mv {MODULES}/rocm/7.1.1.lua {MODULES}/rocm/7.2.0.lua")
    _root(one, f"sed -i s/kdreg2/memhooks/ {MODULES}/rccl-net-plugin/1.0.lua")
    fault(one, "proxy-cut")
    fault(one, "quota-fill", "home")
    _root(one, "chown root:root /lustre/orion/abc123/proj-shared; chmod 755 /lustre/orion/abc123/proj-shared")
    _root(
        one,
        r"sed 's/^\S* \(.*pypi.org.*\)$/127.0.0.9 \1/' /etc/hosts >/run/hosts; cat /run/hosts >/etc/hosts",
    )
    one.write("/run/twin/clock.py", SLOW_CLOCK, user="root")
    _root(one, "setsid python3 /run/twin/clock.py </dev/null >/dev/null 2>&1 & sleep 2")
    seeded = {
        "queue extended: max_time",
        "queue extended: max_nodes",
        "queue debug: max_time",
        "queue debug: jobs_per_user",
        "module rocm/7.1.1 of builds",
        "FI_MR_CACHE_MONITOR, which a module sets",
        "memhooks: FI_MR_CACHE_MONITOR=memhooks",
        "the site's proxy, proxy.ccs.ornl.gov:3128",
        "room of home (GB)",
        "role env",
        "role images",
        "role assets",
        "the package index, https://pypi.org/simple/",
        "the index of torch, https://download.pytorch.org/whl/rocm7.1",
        "the clock",
    }
    told_by_rows = {
        "the modules that a job loads exist",
        "where the module of ROCm lies: ROCM_HOME is made of its name",
    }
    after = differing(examined(user, HF_ENDPOINT="http://127.0.0.1:8099"))
    assert after - FRONTIER == seeded | told_by_rows | {"room of state (GB)"}


def test_compute_nodes_of_isambard(twin: Start) -> None:
    """Two of them in one job; its GPUs answer nothing and its memory is that of one computer."""
    user = site(twin, "isambard")
    account = user.twin.site.overlay.account
    words = ("doctor", "--account", account, "--seconds", "240", "--job", "-N", "2", "--json")
    done = user.hpctrain(*words, timeout=600, env={"HPCTRAIN_SITE": ""})
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


def test_isambard_as_it_is_and_after_changes(twin: Start) -> None:
    user = site(twin, "isambard")
    assert differing(examined(user)) == ISAMBARD
    one = user.twin
    _root(one, "scontrol update partitionname=workq maxtime=12:00:00")
    _root(one, "rm /opt/cray/pe/python/3.11.5/bin/python3 /usr/bin/gcc-12 /usr/bin/g++-12")
    _root(one, f"sed -i s,/opt/nvidia/hpc_sdk/cuda/12.6,/opt/cuda/12.8, {MODULES}/cuda/12.6.lua")
    _root(one, "sed -i /SCRATCHDIR/d /etc/profile.d/00-site.sh")
    lines = examined(user)
    assert differing(lines) - ISAMBARD == {
        "queue workq: max_time",
        "the default partition and its limit",
        "where the Python of hpctrain comes from",
        "the compilers of the builds",
        "the cuda module sets CUDA_HOME to the HPC SDK's",
    }
    assert lines["storage: role runs"]["verdict"] == "could not be asked"
    assert "SCRATCHDIR is not set" in lines["storage: role runs"]["found"]


def test_a_controller_that_hangs_is_a_line(twin: Start) -> None:
    user = site(twin, "isambard")
    fault(user.twin, "ctld-freeze", "50")
    lines = examined(user, seconds=45)
    silent = {fact for fact, row in lines.items() if row["verdict"] == "could not be asked"}
    assert {"scheduler: partitions", "scheduler: nodes"} <= silent
    assert lines["network: the hub, https://huggingface.co"]["verdict"] == "ok"


def _root(twin: Twin, line: str) -> None:
    done = twin.run("bash", "-c", line)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
