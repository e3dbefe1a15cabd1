"""The folders that a site makes, from the facts; no twin is started."""

from __future__ import annotations

import attrs
import pytest

from tests.twin.site_file import PROJECT_GID, USERS, Site, load, names
from tests.twin.storage import folders


def with_role(site: Site, path: str) -> Site:
    role = attrs.evolve(site.cluster.storage["home"], path=path, quota_gb=None, inodes=None)
    storage = {"cache": role, **site.cluster.storage}
    return attrs.evolve(site, cluster=attrs.evolve(site.cluster, storage=storage))


@pytest.mark.parametrize("name", [name for name in names() if "home" in load(name).cluster.storage])
def test_a_role_below_the_home_is_each_user_s_own(name: str) -> None:
    """`{home}` holds `{user}` unseen: a folder of the project would stand in its place."""
    site = load(name)
    plain = {folder.path: folder for folder in folders(site, local=False)}
    more = {folder.path: folder for folder in folders(with_role(site, "{home}/hpctrain/cache"), local=False)}
    assert more.keys() == plain.keys()
    for user, uid in USERS.items():
        home = more[site.home(user)]
        assert (home.mode, home.uid, home.gid) == ("700", uid, uid)
        assert site.fill("{home}/hpctrain/cache", user) == f"{home.path}/hpctrain/cache"


def test_a_role_of_the_project_is_the_project_s() -> None:
    site = with_role(load("frontier"), "/lustre/shared/{account}/hpctrain/cache")
    (folder,) = (f for f in folders(site, local=False) if f.path.startswith("/lustre/shared/"))
    assert (folder.mode, folder.uid, folder.gid) == ("2770", 0, PROJECT_GID)
