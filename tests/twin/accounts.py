"""Slurm's accounting from the facts: who may charge what, and what each QoS allows."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.model.cluster import Queue
from tests.twin.site_file import USERS, Site
from tests.twin.slurmconf import LOGIN_ADDRESS, Row, rows

CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={login}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
"""
DATABASE = """\
AuthType=auth/munge
DbdHost={login}
DbdAddr={address}
SlurmUser=root
PidFile=/run/slurmdbd.pid
LogFile=/twin/outside/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounts
"""


def files(site: Site) -> dict[str, str]:
    """What a twin with accounting has besides."""
    login = site.overlay.login.partition(".")[0]
    return {
        "etc/slurm/slurmdbd.conf": DATABASE.format(login=login, address=LOGIN_ADDRESS),
        "twin/accounting": "".join(f"{line}\n" for line in _lines(site)),
    }


def conf(site: Site) -> str:
    """What slurm.conf says of it."""
    return CONF.format(login=site.overlay.login.partition(".")[0])


def _lines(site: Site) -> Iterable[str]:
    """sacctmgr's words, in order; a job over a limit is refused and does not wait for ever."""
    named = {row.qos: row for row in rows(site) if row.qos}
    yield f"add cluster {site.name}"
    if site.overlay.accounting:
        yield from site.overlay.accounting
        return
    for name, row in named.items():
        yield " ".join(("add qos", name, "Flags=DenyOnLimit", *_limits(row)))
    account, every = site.overlay.account.lower(), ",".join(("normal", *named))
    yield f"add account {account}"
    yield f"add user root,{','.join(USERS)} account={account} qos={every} defaultqos=normal"


def _limits(row: Row) -> Iterable[str]:
    queue: Queue = row.queue
    if not queue.sure:  # a limit that only warns in the facts must not refuse here
        return
    most = {"node": queue.max_nodes, "gres/gpu": queue.max_gpus}
    if said := ",".join(f"{name}={count}" for name, count in most.items() if count is not None):
        yield f"MaxTRESPerJob={said}"
    if queue.min_nodes:
        yield f"MinTRESPerJob=node={queue.min_nodes}"
    if queue.max_time:
        yield f"MaxWall={int(queue.max_time.minutes)}"
    if queue.jobs_per_user:
        yield f"MaxSubmitJobsPerUser={queue.jobs_per_user}"
