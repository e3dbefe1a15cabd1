"""Slurm's files, written from the facts: partitions and limits from queues, GPUs from the hardware."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from hpctrain.model.cluster import Queue
from tests.twin.job_memory import memory_per_core
from tests.twin.site_file import Host, Site

LOGIN_ADDRESS = "10.77.0.1"
HERE = Path(__file__).parent
HEAD = """\
ClusterName={name}
SlurmctldHost={login}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/twin/state
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=/twin/outside/log/slurmctld.log
SlurmdLogFile=/twin/outside/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory}
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
MessageTimeout=10
KillWait=3
MinJobAge=86400
GresTypes=gpu
PrologFlags=Alloc
JobSubmitPlugins=lua
EnforcePartLimits=ALL
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
TreeWidth=64
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A queue as Slurm sees it."""

    partition: str
    qos: str
    queue: Queue


def rows(site: Site) -> tuple[Row, ...]:
    """The facts' queues by partition and QoS; one that names no partition is in the default one."""
    default = site.overlay.default_partition
    return tuple(
        Row(_word(q, "--partition=") or default or q.name, _word(q, "--qos="), q) for q in site.cluster.queue
    )


def _word(queue: Queue, option: str) -> str:
    words = queue.ask.get("slurm", ())
    return next((w.removeprefix(option) for w in words if w.startswith(option)), "")


def default_partition(site: Site) -> str:
    """The partition of a job that names none."""
    return site.overlay.default_partition or rows(site)[0].partition


def files(site: Site, *, powered_down: int = 0, accounting: str = "", step_mb: int = 0) -> dict[str, str]:
    """Every file of /etc/slurm. `powered_down` adds that many nodes which exist on paper only; `accounting`
    is what slurm.conf says of it; `step_mb` is what a training step takes here, 0 where none runs."""
    return {
        "slurm.conf": "".join(f"{line}\n" for line in _conf(site, powered_down, step_mb)) + accounting,
        "gres.conf": "".join(f"{line}\n" for line in _gres(site)),
        "cgroup.conf": "CgroupPlugin=disabled\n",
        "plugstack.conf": "",
        "job_submit.lua": _lua_table(site, bool(accounting)) + (HERE / "job_submit.lua").read_text(),
    }


def _conf(site: Site, powered_down: int, step_mb: int) -> Iterable[str]:
    login = site.overlay.login.partition(".")[0]
    memory = memory_per_core(site.cluster, step_mb)
    yield HEAD.format(name=site.name, login=login, address=LOGIN_ADDRESS, memory=memory).rstrip()
    if powered_down:
        yield "SuspendProgram=/bin/true\nResumeProgram=/bin/true\nResumeTimeout=65000\nSuspendTime=-1"
        yield f"NodeName=cloud[00001-{powered_down:05}] {_shape(site, site.hosts[0])} State=CLOUD"
    for host in site.hosts:
        yield f"NodeName={host.name} NodeAddr={host.address} {_shape(site, host)}"
    yield from site.overlay.slurm
    claimed = {name for host in site.hosts for name in host.kind.partitions}
    for partition in () if site.overlay.slurm else dict.fromkeys(row.partition for row in rows(site)):
        there = [
            host.name for host in site.hosts
            if partition in host.kind.partitions or (partition not in claimed and not host.kind.partitions)
        ]  # fmt: skip
        if powered_down:
            there.append(f"cloud[00001-{powered_down:05}]")
        yield _partition(site, partition, there)
    urgent = ",".join(host.name for host in site.hosts)
    yield f"PartitionName=urgent Nodes={urgent} Hidden=YES RootOnly=YES PriorityTier=100 State=UP"


def _partition(site: Site, name: str, nodes: list[str]) -> str:
    """Slurm's own limits are the widest of the partition's queues; bins are job_submit.lua's."""
    queues = [row.queue for row in rows(site) if row.partition == name]
    words = [f"PartitionName={name}", f"Nodes={','.join(nodes)}", "State=UP"]
    if name == default_partition(site):
        words.append("Default=YES")
    times = [q.max_time for q in queues]
    if None not in times:
        words.append(f"MaxTime={max(t for t in times if t).clock}")
    counts = [q.max_nodes for q in queues]
    if None not in counts:
        words.append(f"MaxNodes={max(c for c in counts if c)}")
    if site.overlay.exclusive:
        words.append("OverSubscribe=EXCLUSIVE")
    return " ".join(words)


def gpus(site: Site, host: Host) -> int:
    """How many a node has: those of the hardware where the place gives GPUs."""
    has = any(need.value == "gpu" for need in host.place.provides)
    return site.cluster.hardware.gpus_per_node if has else 0


def _shape(site: Site, host: Host) -> str:
    hardware, kind = site.cluster.hardware, host.kind
    cpus = kind.cpus or hardware.cores_per_node
    memory = kind.memory_mb or int(hardware.memory_gb * 1024)
    words = [f"CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}"]
    if count := gpus(site, host):
        words.append(f"Gres=gpu:{count}")
    if kind.features:
        words.append(f"Features={','.join(kind.features)}")
    return " ".join(words)


def _gres(site: Site) -> Iterable[str]:
    for host in site.hosts:
        if count := gpus(site, host):
            yield f"NodeName={host.name} Name=gpu File=/dev/nvidia[0-{count - 1}]"


def _accounts(site: Site) -> list[str]:
    """The project's account, and those that jobs of some places are charged to in its stead."""
    account = site.overlay.account
    return sorted({account, *(site.cluster.account_at(p.name, account) for p in site.cluster.place)})


def _lua_table(site: Site, accounting: bool) -> str:
    policy = site.cluster.policy
    lines = [
        f"accounting = {_lua(accounting)}",
        f"accounts = {{{', '.join(f'[{_lua(name.lower())}] = true' for name in _accounts(site))}}}",
        f"account_required = {_lua(policy.account == 'required' and not site.overlay.default_account)}",
        f"wrong_account = {_lua(site.overlay.wrong_account)}",
        f"gpus_required = {_lua(site.overlay.gpus_required)}",
        f"refuses_mem_0 = {_lua(site.overlay.refuses_mem_0)}",
        f"default_partition = {_lua(default_partition(site))}",
        "queues = {",
    ]
    for row in rows(site):
        if row.qos and accounting:
            continue  # Slurm itself refuses
        q = row.queue
        fields = {
            "name": q.name, "partition": row.partition, "qos": row.qos, "min_nodes": q.min_nodes,
            "max_nodes": q.max_nodes, "max_gpus": q.max_gpus, "jobs_per_user": q.jobs_per_user,
            "max_minutes": int(q.max_time.minutes) if q.max_time else None,
        }  # fmt: skip
        if q.sure:  # a limit that only warns in the facts must not refuse here
            lines.append("  {" + ", ".join(f"{k} = {_lua(v)}" for k, v in fields.items()) + "},")
        else:
            lines.append(
                f"  {{name = {_lua(q.name)}, partition = {_lua(row.partition)}, qos = {_lua(row.qos)}}},"
            )
    return "\n".join([*lines, "}", ""])


def _lua(value: object) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
