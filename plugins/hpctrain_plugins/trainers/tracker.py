"""Whether W&B hears of a run while it trains: where the nodes reach the network, and the key is given."""

from __future__ import annotations

from hpctrain.plugin import Cluster, EnvVar, How, Need, RunSpec

SECRET = "wandb"  # noqa: S105  (its name)


def mode(run: RunSpec, cluster: Cluster, *, used: bool) -> tuple[EnvVar, ...]:
    """The variable with its reason, where W&B is `used` or its key is given; a site or a run file wins."""
    is_given = SECRET in run.secrets
    if not (used or is_given):
        return ()
    if not _reaches_network(cluster):
        return (_mode("offline", "nodes have no network: `hpctrain sync` sends it afterwards"),)
    if not is_given:
        return (_mode("offline", 'the key is not given, secrets = ["wandb"]: `hpctrain sync` sends it'),)
    return (_mode("online", "the key is given, and nodes reach the network"),)


def _mode(value: str, why: str) -> EnvVar:
    return EnvVar(name="WANDB_MODE", value=value, how=How.DEFAULT, why=why)


def _reaches_network(cluster: Cluster) -> bool:
    """Whether the place where training runs does."""
    needed = {Need.TARGET, Need.GPU}
    place = next((p for p in cluster.place if needed <= {*p.provides}), None)
    return place is not None and Need.NETWORK in place.provides
