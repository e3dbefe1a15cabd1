"""Whose files may be used: the one rule for artifacts and run directories; publish.sh has the same in bash.

Owners and modes of the names on the way decide, never the owner of what a link points to: a user of your
group may point a link of his at a folder of yours. `tests/run/test_trust.py` holds both to one answer.
"""

# Every plan judges each folder on the way: text is a tenth of the cost of paths.
# ruff: noqa: PTH100, PTH112, PTH115, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

HEAD = "# hpctrain manifest 1 "
"""Begins a manifest; the name of its artifact follows."""
MANIFEST_MOST = 64 << 20
"""Bytes of a manifest, which names half a million files with that; one that is cut there is none of ours."""
LINKS_MOST = 40
"""Symbolic links on the way to one folder, as in the kernel."""

_ROW = re.compile(rb"(0|[1-9][0-9]{0,17}) \\?[0-9a-f]{64}  content(/.*)?\Z", re.DOTALL)


class Verdict(Enum):
    """What stands at the place of an artifact."""

    EXISTS = "exists"
    MISSING = "missing"
    STALE = "stale"
    """A link of ours that leads to nothing, or to what is not its artifact: it is made anew."""
    REFUSED = "refused"
    """Something that is neither used nor replaced."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason; `path` is what is wrong, `owner` the user who must be accepted, or was."""

    verdict: Verdict
    reason: str = ""
    path: str = ""
    owner: str = ""
    is_foreign: bool = False
    """It is another user's: refused until that one is accepted, or accepted."""


@dataclass(frozen=True)
class Accepted:
    """The users whose files are used: this one, root, and `owners`, by name, number or `@group`."""

    owners: tuple[str, ...] = ()

    def includes(self, uid: int) -> bool:
        """Whether files of this user are used."""
        if uid in (0, os.geteuid()) or str(uid) in self.owners:
            return True
        name = _account_name(uid) if self.owners else ""
        if not name:
            return False
        return name in self.owners or any(f"@{group}" in self.owners for group in self._groups(name))

    def _groups(self, name: str) -> Iterator[str]:
        """The groups of a user by name; nobody is asked while no group is accepted."""
        if not any(owner.startswith("@") for owner in self.owners):
            return
        import grp
        import pwd

        for number in os.getgrouplist(name, pwd.getpwnam(name).pw_gid):
            try:
                yield grp.getgrgid(number).gr_name
            except KeyError:  # noqa: PERF203  (a group without a name)
                continue


NOBODY_ELSE = Accepted()
"""This user and root."""


def owner_name(uid: int) -> str:
    """The user's name, or the number of one without."""
    return _account_name(uid) or str(uid)


def folder(path: str, accepted: Accepted, *, closed: bool = True) -> Judgement | None:
    """What lets somebody else swap `path` or a folder above it; None: nobody can.

    What does not exist yet is no fault. A folder of the site above may be its project's to write, but the
    last one must keep its names to their owners (`closed`): nobody can build a thing safely in another one.
    """
    for place, status in _way(path):
        if fault := _swappable(place, status, accepted):
            return fault
    if closed and os.path.isdir(path) and _is_open(os.stat(path).st_mode, 0o022):
        last = os.path.realpath(path)
        owner = owner_name(os.stat(last).st_uid)
        return _refused(last, "lets its group replace what others made there; chmod +t is missing", owner)
    return None


def owner_fault(path: str, accepted: Accepted) -> str:
    """Whose the file `path` is, or the link of this name; "" when it is an accepted user's."""
    link, status = os.lstat(path), os.stat(path)
    if not accepted.includes(link.st_uid):
        word = "is a link of" if stat.S_ISLNK(link.st_mode) else "belongs to"
        return f"{word} {owner_name(link.st_uid)}"
    return "" if accepted.includes(status.st_uid) else f"belongs to {owner_name(status.st_uid)}"


def file_fault(path: str, accepted: Accepted) -> str:
    """Why the words in the file `path` may be another user's; "" when only accepted users write it."""
    if fault := owner_fault(path, accepted):
        return fault
    status = os.stat(path)
    if status.st_mode & 0o002:
        return "may be written by everybody"
    if status.st_mode & 0o020 and not _is_private_group(status):
        return "may be written by its group"
    return ""


def read_fault(path: str) -> str:
    """Why other users can read the file `path`, through every folder above it; "" when none of them can."""
    status = os.stat(path)
    folders = [os.stat(parent).st_mode for parent in Path(os.path.realpath(path)).parents]
    if status.st_mode & 0o004 and all(mode & 0o001 for mode in folders):
        return "can be read by everybody"
    if status.st_mode & 0o040 and all(mode & 0o011 for mode in folders) and not _is_private_group(status):
        return "can be read by its group"
    return ""


def _is_private_group(status: os.stat_result) -> bool:
    """Whether the file's group is its owner alone, as many systems give each user one of the same name."""
    import grp

    try:
        group = grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    owner = _account_name(status.st_uid)
    return group.gr_name == owner and set(group.gr_mem) <= {owner}


def artifact(link: str, accepted: Accepted) -> Judgement:
    """What stands at `link`, judged by names, owners and the manifest's head; sums are not compared."""
    parent, name = os.path.split(os.path.abspath(link))
    if fault := folder(parent, accepted):
        return fault
    try:
        status = os.lstat(link)
    except (FileNotFoundError, NotADirectoryError):
        return Judgement(Verdict.MISSING)
    except OSError as error:
        return _refused(link, f"cannot be looked at: {(error.strerror or '').lower()}")
    if not stat.S_ISLNK(status.st_mode):
        return _refused(link, "is in the way: it is no link that hpctrain made", owner_name(status.st_uid))
    if not accepted.includes(status.st_uid):
        return _foreign(link, status.st_uid)
    reason = _content_fault(parent, name, os.readlink(link), accepted)
    if not reason and status.st_uid == os.geteuid():
        return Judgement(Verdict.EXISTS)
    owner = owner_name(status.st_uid)
    if not reason:
        return Judgement(Verdict.EXISTS, path=link, owner=owner, is_foreign=True)
    verdict = Verdict.STALE if status.st_uid == os.geteuid() else Verdict.REFUSED
    return Judgement(verdict, reason, link, owner)


def rows(manifest: bytes, name: str) -> list[bytes] | None:
    """The lines of the manifest of the artifact `name`; None when it is another's, or lists files outside."""
    head, _, text = manifest.partition(b"\n")
    if head != os.fsencode(HEAD + escaped(name)) or (text and not text.endswith(b"\n")):
        return None
    lines = text.split(b"\n")[:-1]
    inside = all(_ROW.match(line) and b"/../" not in line + b"/" for line in lines)
    return lines if inside else None


def escaped(name: str) -> str:
    """A name on one line, as sha256sum writes it."""
    return name.replace("\\", "\\\\").replace("\n", "\\n")


def has_files(content: str) -> bool:
    """Whether a manifest of `content` must list something."""
    if not os.path.isdir(content):
        return True
    return any(
        stat.S_ISREG(os.lstat(f"{at}/{name}").st_mode) for at, _, files in os.walk(content) for name in files
    )


def _content_fault(parent: str, name: str, target: str, accepted: Accepted) -> str:
    """Why the link `name` does not lead to what was published under this name."""
    work, _, content = target.partition("/")
    if content != "content" or not re.match(rf"\.hpc-{re.escape(name)}\.[^/]+\Z", work, re.DOTALL):
        return "leads to no build folder of its name"
    base = f"{parent}/{work}"
    try:
        status = os.lstat(base)
        if not stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(os.lstat(f"{base}/content").st_mode):
            return "leads to no build folder"
        if not accepted.includes(status.st_uid):
            return f"leads to a folder of {owner_name(status.st_uid)}"
        if status.st_mode & 0o022:
            return "leads to a folder that others may write"
        with open(f"{base}/MANIFEST", "rb") as file:
            lines = rows(file.read(MANIFEST_MOST), name)
    except (FileNotFoundError, NotADirectoryError):
        return "leads to nothing whole"
    except OSError as error:
        return f"cannot be read: {(error.strerror or '').lower()}"
    if lines is None:
        return "has a manifest of another artifact"
    return "has an empty manifest" if not lines and has_files(f"{base}/content") else ""


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Every folder and link that is passed on the way to `path`, as far as it exists."""
    todo, place, links = os.path.abspath(path).split("/")[1:], "/", 0
    yield place, os.lstat(place)
    while todo:
        part = todo.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            place = os.path.dirname(place)
            continue
        step = os.path.join(place, part)
        try:
            status = os.lstat(step)
        except OSError:  # not there, or a folder above may not be entered: who opens it will say so
            return
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            place = step
            continue
        links += 1
        if links > LINKS_MOST:
            return
        target = os.readlink(step)
        place = "/" if target.startswith("/") else place
        todo = [*target.split("/"), *todo]


def _swappable(place: str, status: os.stat_result, accepted: Accepted) -> Judgement | None:
    if not accepted.includes(status.st_uid):
        return _foreign(place, status.st_uid)
    if stat.S_ISDIR(status.st_mode) and _is_open(status.st_mode, 0o002):
        return _refused(place, "may be changed by everybody", owner_name(status.st_uid))
    return None


def _is_open(mode: int, writers: int) -> bool:
    return bool(mode & writers) and not mode & stat.S_ISVTX


def _foreign(path: str, uid: int) -> Judgement:
    owner = owner_name(uid)
    reason = f"belongs to {owner}, who is not among the owners you accept"
    return Judgement(Verdict.REFUSED, reason, path, owner, is_foreign=True)


def _refused(path: str, reason: str, owner: str = "") -> Judgement:
    return Judgement(Verdict.REFUSED, reason, path, owner)


def _account_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
