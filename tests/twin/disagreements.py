"""Ten things that change on each site behind the facts' back, and the lines in which a doctor must say so.

A change is a line of root's shell in the twin, or a lever of `faults.py` with its words. `differs` are the
facts that the machine then contradicts, `silent` those that can no longer be asked.
"""

from __future__ import annotations

import attrs

MODULES = "/twin/modulefiles"
CLOCK_PORT = 8099
SLOW_CLOCK = """\
import http.server, email.utils, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response_only(200)
        self.send_header("Date", email.utils.formatdate(time.time() - 600, usegmt=True))
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8099), Page).serve_forever()
"""


@attrs.frozen
class Change:
    """What the site did, and what is to be found of it."""

    line: str
    differs: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    fault: tuple[str, ...] = ()


def change(line: str, *differs: str, silent: tuple[str, ...] = ()) -> Change:
    return Change(line, frozenset(differs), frozenset(silent))


def lever(words: str, *differs: str) -> Change:
    return Change("", frozenset(differs), fault=tuple(words.split()))


def index_cut(*torch: str) -> Change:
    """The index refuses; that of torch, where the site has one, is behind the same address."""
    line = r"sed 's/^\S* \(.*pypi.org.*\)$/127.0.0.9 \1/' /etc/hosts >/run/hosts; cat /run/hosts >/etc/hosts"
    return change(line, "the package index, https://pypi.org/simple/", *torch)


def closed(folder: str, *roles: str) -> Change:
    return change(f"chown root:root {folder}; chmod 755 {folder}", *(f"role {role}" for role in roles))


def less_memory(megabytes: int, *rows: str) -> Change:
    """It comes first: a controller that reads its files again forgets what it was told of partitions."""
    line = (
        rf"sed -i 's/RealMemory=[0-9]*/RealMemory={megabytes}/' /etc/slurm/slurm.conf; scontrol reconfigure"
    )
    return change(line, "hardware.memory_gb", *rows)


def partition(words: str, *differs: str) -> Change:
    return change(f"scontrol update partitionname={words}", *differs)


def gone(name: str, queue: str) -> Change:
    return change(f"scontrol delete partitionname={name}", f"queue {queue}")


SLOW = change(
    "setsid /usr/bin/python3 /run/twin/clock.py </dev/null >/dev/null 2>&1 & sleep 2",
    "the clock",
)
"""The hub's clock is ten minutes behind; a test asks it at CLOCK_PORT."""

BEFORE = {
    "alps": {
        "architecture of the login node",
        "compiler",
        "hardware.nodes",
        "memory of a node, its default and the most that a job may ask for",
    },
    "frontier": {"container engine apptainer", "version of slurm", "hardware.nodes"},
    "isambard": {"architecture of the login node", "hardware.nodes"},
    "leonardo": {"version of slurm", "hardware.nodes", "the module system: Environment Modules"},
    "olivia": {
        "hardware.nodes",
        "the arm64 manifest of the base image has the digest in hpctrain's table",
    },
}
"""What a twin is not: x86_64, Debian's Slurm, Apptainer, compiler and Lmod, two nodes."""

CHANGES = {
    "alps": (
        less_memory(400_000),
        partition(
            "normal maxtime=6:00:00", "queue normal: max_time", "time and node limits of the partitions"
        ),
        partition("debug maxtime=30:00", "queue debug: max_time"),
        partition("debug maxnodes=2", "queue debug: max_nodes"),
        gone("xfer", "xfer"),
        change("sed -i /SCRATCH=/d /etc/profile.d/00-site.sh", "scratch is Iopsstor"),
        change(": >/etc/slurm/plugstack.conf", "srun knows --environment"),
        lever("quota-fill checkpoints inodes", "room of checkpoints (files)", "room of runs (files)"),
        closed("/iopsstor/scratch/cscs/alice", "env", "images", "assets", "data"),
        index_cut(),
        SLOW,
    ),
    "frontier": (
        partition("extended maxtime=6:00:00", "queue extended: max_time"),
        partition("extended maxnodes=32", "queue extended: max_nodes"),
        change(
            "sacctmgr -i modify qos debug set MaxWall=01:00:00 MaxSubmitJobsPerUser=2",
            "queue debug: max_time",
            "queue debug: jobs_per_user",
        ),
        change(
            f"mv {MODULES}/rocm/7.1.1.lua {MODULES}/rocm/7.2.0.lua",
            "module rocm/7.1.1 of builds",
            "the modules that a job loads exist",
            "where the module of ROCm lies: ROCM_HOME is made of its name",
        ),
        change(
            f"sed -i s/kdreg2/memhooks/ {MODULES}/rccl-net-plugin/1.0.lua",
            "FI_MR_CACHE_MONITOR, which a module sets",
            "memhooks: FI_MR_CACHE_MONITOR=memhooks",
        ),
        lever("proxy-cut", "the site's proxy, proxy.ccs.ornl.gov:3128"),
        lever("quota-fill home", "room of home (GB)", "room of state (GB)"),
        closed("/lustre/orion/abc123/proj-shared", "env", "images", "assets"),
        index_cut("the index of torch, https://download.pytorch.org/whl/rocm7.1"),
        SLOW,
    ),
    "isambard": (
        less_memory(200_000),
        partition("workq maxtime=12:00:00", "queue workq: max_time", "the default partition and its limit"),
        change(
            "rm /opt/cray/pe/python/3.11.5/bin/python3",
            "where the Python of hpctrain comes from",
        ),
        change("rm /usr/bin/gcc-12 /usr/bin/g++-12", "the compilers of the builds"),
        change(
            f"sed -i s,/opt/nvidia/hpc_sdk/cuda/12.6,/opt/cuda/12.8, {MODULES}/cuda/12.6.lua",
            "the cuda module sets CUDA_HOME to the HPC SDK's",
        ),
        change(
            "sed -i /SCRATCHDIR/d /etc/profile.d/00-site.sh",
            silent=("role runs", "variables of the roles' paths"),
        ),
        change(
            "echo aws-ofi-nccl 1.14.0 >>/tools/brics/apps/aws-ofi-nccl/1.8.1/lib/libnccl-net.so",
            "version of plugin",
        ),
        change(
            "echo 'int ncclCommShrink(void) { return 3; }' >/run/n.c; "
            "gcc -shared -fPIC -o /tools/brics/apps/nccl/2.26.6-1/lib/libnccl.so.2 /run/n.c",
            "the site's NCCL lacks the function that torch calls since 2.8",
        ),
        lever("quota-fill home", "room of home (GB)", "room of state (GB)"),
        index_cut("the index of torch, https://download.pytorch.org/whl/cu126"),
        SLOW,
    ),
    "leonardo": (
        partition("boost_usr_prod maxtime=12:00:00", "queue prod: max_time"),
        partition("boost_usr_prod maxnodes=32", "queue prod: max_nodes"),
        partition("lrd_all_serial maxtime=2:00:00", "queue serial: max_time"),
        gone("boost_fua_prod", "fua"),
        change(f"mv {MODULES}/gcc/12.2.0.lua {MODULES}/gcc/13.2.0.lua", "module gcc/12.2.0 of builds"),
        change(
            f"mv {MODULES}/python/3.11.7.lua {MODULES}/python/3.12.1.lua",
            "module python/3.11.7 of builds",
            "the modules that are loaded exist",
        ),
        change(
            "rm /leonardo/prod/opt/compilers/cuda/12.6/none/bin/nvcc",
            "CUDA lies where the builds look for it",
        ),
        lever("quota-fill home", "room of home (GB)", "room of state (GB)"),
        closed("/leonardo_work/EUHPC_D00_001", "images", "assets"),
        index_cut("the index of torch, https://download.pytorch.org/whl/cu126"),
        SLOW,
    ),
    "olivia": (
        less_memory(400_000, "memory of a GPU node as the scheduler counts it: 808 GiB"),
        partition("accel maxtime=1-00:00:00", "queue accel: max_time"),
        partition("accel maxnodes=4", "queue accel: max_nodes"),
        change(
            f'sed -i \'s/FI_CXI_DISABLE_HOST_REGISTER", "1"/FI_CXI_DISABLE_HOST_REGISTER", "0"/\' '
            f"{MODULES}/NCCL/*.lua",
            "FI_CXI_DISABLE_HOST_REGISTER, which a module sets",
        ),
        change(
            "printf '#!/bin/sh\\necho Python 3.9.18\\n' >/usr/bin/python3.12",
            "a Python that is new enough for hpctrain",
        ),
        lever("proxy-cut", "the proxy of place compute, 10.63.2.48:3128"),
        lever("quota-fill home inodes", "room of home (files)", "room of state (files)"),
        closed("/cluster/projects/nn9999k", "env", "images"),
        index_cut(),
        SLOW,
    ),
}
"""At least ten of each."""
