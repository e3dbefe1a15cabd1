"""What is known of nodes that failed, for those who plan and submit; `hpctrain_job.bad_nodes` keeps it."""

from __future__ import annotations

import time

from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding
from hpctrain.model.words import Loc
from hpctrain.plan import chain
from hpctrain.render import shell
from hpctrain_job import bad_nodes
from hpctrain_job.files import trust


def place_of(cluster: Cluster, binding: Binding) -> bad_nodes.Place | None:
    """Where the findings about a cluster's nodes lie; None where that is not known here."""
    loc = chain.bad_nodes_place(cluster)
    if loc is None:
        return None
    owners = shell.owners(cluster, loc.role, binding)
    return place_at(loc, binding, owners, is_shared=bool(chain.shared_role(cluster)))


def place_at(
    loc: Loc, binding: Binding, owners: tuple[str, ...], *, is_shared: bool
) -> bad_nodes.Place | None:
    """The same, as a run was rendered."""
    if not isinstance(binding.roots.get(loc.role), str):
        return None
    return bad_nodes.Place(shell.plain(loc, binding), trust.Accepted(owners), is_shared)


def words(entry: bad_nodes.BadNode) -> str:
    """`hung on 2026-11-24 at 02:14: rank 3 on nid005017 hangs: it does nothing while others wait for it`."""
    newest = entry.findings[0]
    evidence = f": {newest.evidence}" if newest.evidence else ""
    further = f"; {len(entry.findings) - 1} more" if len(entry.findings) > 1 else ""
    when = time.strftime("%Y-%m-%d at %H:%M", time.localtime(newest.at))
    return f"{newest.kind} on {when}{evidence}{further}"


def report_at(place: bad_nodes.Place | None) -> bad_nodes.NodeReport:
    """What counts now."""
    return place.report(time.time()) if place else bad_nodes.NodeReport()
