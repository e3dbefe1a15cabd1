"""The files that a Slurm of our own needs, as text."""

from __future__ import annotations

import dataclasses

USERS = {"alice": 61001, "bob": 61002}
"""Ordinary users of the rig; nobody of that number exists outside."""

SLURM_CONF = """\
ClusterName=rig
SlurmctldHost=login(10.77.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout={slurmd_timeout}
MessageTimeout={message_timeout}
KillWait={kill_wait}
MinJobAge={min_job_age}
GresTypes=gpu
PrologFlags=Alloc
"""


DATABASE_CONF = """\
AuthType=auth/munge
DbdHost=login
DbdPort=17099
SlurmUser=root
PidFile={dir}/slurmdbd.pid
LogFile={dir}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounts
"""
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=login
AccountingStoragePort=17099
"""


@dataclasses.dataclass(frozen=True)
class Conf:
    """What a test may want different; times in seconds."""

    nodes: int = 2
    gpus: int = 4
    cpus: int = 64
    min_job_age: int = 86400
    message_timeout: int = 10
    slurmd_timeout: int = 10
    kill_wait: int = 3
    port: int = 17000
    cgroup: str = "ConstrainCores=no"
    """Slurm 24.11 without a writable cgroup file system wants "CgroupPlugin=disabled"."""

    accounting: bool = False
    """With a database, which takes some seconds more to boot."""

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(f"n{i}" for i in range(1, self.nodes + 1))

    def files(self, folder: str) -> dict[str, str]:
        """Every file under /etc/slurm and the few others, by name, for a rig that lives in `folder`."""
        database = {"slurm/slurmdbd.conf": DATABASE_CONF.format(dir=folder)} if self.accounting else {}
        return {
            **database,
            "slurm/slurm.conf": self._slurm(folder),
            "slurm/gres.conf": f"Name=gpu File={folder}/gpu[0-{self.gpus - 1}]\n" if self.gpus else "",
            "slurm/plugstack.conf": "",
            "slurm/cgroup.conf": self.cgroup + "\n",
            "hosts": "127.0.0.1 localhost\n10.77.0.1 login\n"
            + "".join(f"10.77.0.1 {n} {n}-fast\n" for n in self.names),
            "passwd": "root:x:0:0::/root:/bin/bash\nmunge:x:102:105::/nonexistent:/usr/sbin/nologin\n"
            + "".join(f"{u}:x:{i}:{i}::{folder}/home/{u}:/bin/bash\n" for u, i in USERS.items()),
            "group": "root:x:0:\nmunge:x:105:\n" + "".join(f"{u}:x:{i}:\n" for u, i in USERS.items()),
        }

    def _slurm(self, folder: str) -> str:
        head = SLURM_CONF.format(dir=folder, **dataclasses.asdict(self))
        shape = f"CPUs={self.cpus} Sockets=1 CoresPerSocket={self.cpus} ThreadsPerCore=1 RealMemory=480000"
        head += ACCOUNTING if self.accounting else ""
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        nodes = [
            f"NodeName={name} NodeHostname=login NodeAddr=10.77.0.1 Port={self.port + i} {shape}{gres}"
            for i, name in enumerate(self.names, start=1)
        ]
        parts = [
            "PartitionName=batch Nodes=ALL Default=YES MaxTime=24:00:00 State=UP",
            "PartitionName=debug Nodes=ALL MaxTime=00:30:00 MaxNodes=1 State=UP",
        ]
        return "\n".join([head, *nodes, *parts]) + "\n"
