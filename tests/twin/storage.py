"""The site's folders: which exist, whose they are, and how much goes into each.

What the facts give a quota is a file system of its own with those limits, so a folder of a user's or
of the project's is full when the site's would be.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

import attrs

from hpctrain.model.cluster import Storage
from tests.twin.site_file import PROJECT_GID, USERS, Site

OURS = "hpctrain"
SIZE = 2 * 1024**3
FILES = 10**8
"""Of file systems that the facts do not limit."""


@attrs.frozen(kw_only=True)
class Folder:
    """What the site has made before anyone comes: a user's own folder, or the project's."""

    path: str
    mode: str = "755"
    uid: int = 0
    gid: int = 0
    size: int = 0
    """Bytes that go into it; 0: no file system of its own."""
    inodes: int = FILES
    """Files and folders that go into it."""

    @property
    def line(self) -> str:
        """As `lay_out` of lib.sh reads it."""
        return f"{self.size} {self.inodes} {self.mode} {self.uid} {self.gid} {self.path}"

    @property
    def options(self) -> str:
        """The limits as options of mount."""
        return f"size={self.size},nr_inodes={self.inodes}"


def folders(site: Site, *, local: bool) -> list[Folder]:
    """Each folder once, parents first."""
    made: dict[str, Folder] = {}
    for role in site.cluster.storage.values():
        if role.node_local == local:
            for folder in _folders(site, role):
                made[folder.path] = _wider(made.get(folder.path, folder), folder)
    if not local:
        made |= {folder.path: folder for folder in _made_by_alice(site, tuple(made))}
    tops = {_top(path) for path in made} - {"/dev/shm"} - made.keys()
    return sorted([*made.values(), *(Folder(path=top, size=SIZE) for top in tops)], key=lambda f: f.path)


def login_only(site: Site) -> list[Folder]:
    """What compute nodes do not have."""
    return [
        Folder(path=site.fill(path, user), mode="700", uid=uid, gid=uid)
        for path in site.overlay.login_only
        for user, uid in USERS.items()
    ]


def _folders(site: Site, role: Storage) -> Iterable[Folder]:
    path, personal = _made_by_site(site.template(role.path))
    size, inodes = int((role.quota_gb or 0) * 10**9), role.inodes or FILES
    for user, uid in USERS.items():
        whose = ("700", uid, uid) if personal else ("2770", 0, PROJECT_GID)
        mode, owner, group = whose
        yield Folder(path=site.fill(path, user), mode=mode, uid=owner, gid=group, size=size, inodes=inodes)


def _made_by_alice(site: Site, given: tuple[str, ...]) -> Iterable[Folder]:
    """What she made below the site's own folders, with all on the way to it."""
    uid = USERS["alice"]
    for template in site.overlay.made:
        path = PurePosixPath(site.fill(template, "alice"))
        for part in map(str, (path, *path.parents)):
            if part not in given and any(part.startswith(f"{folder}/") for folder in given):
                yield Folder(path=part, mode="700", uid=uid, gid=uid)


def _wider(one: Folder, other: Folder) -> Folder:
    """Roles may share a folder: the largest of their limits holds."""
    inodes = sorted(count for count in (one.inodes, other.inodes) if count != FILES) or [FILES]
    return attrs.evolve(one, size=max(one.size, other.size), inodes=inodes[-1])


def _made_by_site(template: str) -> tuple[str, bool]:
    """The part of a path that is there before us, and whether it is a user's own."""
    parts: list[str] = []
    for part in template.split("/"):
        if part == OURS:
            break
        parts.append(part)
        if "{user}" in part or "{uid}" in part:
            return "/".join(parts), True
    return "/".join(parts), False


def _top(path: str) -> str:
    """The file system that a path is on: its first two parts, or one for short paths."""
    parts = path.split("/")[1:]
    return "/" + "/".join(parts[: 2 if len(parts) > 2 else 1])
