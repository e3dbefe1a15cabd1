"""Storage roles: is the folder there, may you write, does it hold what the facts say, is there room."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.doctor.question import Answer, Finding, Question, Verdict, stated
from hpctrain.doctor.site import Site
from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Storage
from hpctrain.render.shell import plain
from hpctrain.run.prepare.bind import bound

AREA = "storage"
GB = 1e9
MOUNTS = Path("/proc/self/mounts")
NEARLY = 0.9
"""A quota may be smaller by so much: sites count in powers of ten or of two."""
FULL = 0.01
"""Below this share of free space, or of files, the next job writes to a full disk."""
LOOK = """\
path=$1
while [ ! -e "$path" ] && [ "$path" != / ]; do path=${path%/*}; path=${path:-/}; done
echo "at=$path"
[ -d "$path" ] && echo folder=1
[ -w "$path" ] && echo writable=1
df -Pk "$path" | awk 'NR == 2 { print "kib=" $2, $4 }'
df -Pi "$path" | awk 'NR == 2 { print "files=" $2, $4 }'
"""
LUSTRE = """\
command -v lfs >/dev/null || { echo none; exit; }
path=$1
while [ ! -e "$path" ] && [ "$path" != / ]; do path=${path%/*}; path=${path:-/}; done
project=$(lfs project -d "$path" 2>/dev/null | awk '{ print $1 }')
for owner in "-u $2" "-g $(stat -c %g "$path")" "-p ${project:-0}"; do
  case $owner in "-p 0") continue ;; esac
  echo "owner $owner"
  # shellcheck disable=SC2086
  lfs quota -q $owner "$path" 2>/dev/null
done
echo end
"""
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_QUOTA = re.compile(
    r"(?:^|\s)(?P<used>\d+)\*?\s+(?P<soft>\d+)\s+(?P<hard>\d+)\s+\S+"
    r"\s+(?P<files>\d+)\*?\s+(?P<soft_files>\d+)\s+(?P<hard_files>\d+)"
)
_OWNERS = {"-u": "yours", "-g": "the group's", "-p": "the project's"}


@frozen
class _Room:
    """How much a file system or a quota holds, and has left."""

    whose: str
    size: float
    free: float
    files: int = 0
    free_files: int = 0

    def of(self, unit: str) -> tuple[str, float, float]:
        """Whose it is, how much it holds, and how much is free."""
        if unit == "GB":
            return self.whose, self.size / GB, self.free / GB
        return self.whose, self.files, self.free_files


def questions(site: Site) -> Iterator[Question]:
    """The variables of the roles' paths; one for each role, and Lustre's quota where its programs are."""
    yield from _variables(site)
    for role, storage in site.cluster.storage.items():
        if storage.node_local:
            todo = f'in a job: df -h "{storage.path}"'
            yield stated(f"role {role}", _line(role, storage, Verdict.UNKNOWN, "on each node alone", todo))
            continue
        try:
            roots = bound(site.cluster, site.account, site.environ, roles=(role,), on_cluster=True)
            path = plain(roots.roots[role], roots)
        except ConfigError as error:
            problem = error.problems[0]
            yield stated(
                f"role {role}", _line(role, storage, Verdict.SILENT, problem.message, _mend(problem.code))
            )
            continue
        yield folder(site, role, storage, path)
        if storage.quota_gb or storage.inodes:
            yield _quota(role, storage, path)


def _variables(site: Site) -> Iterator[Question]:
    """A login shell sets what the paths are made of: a capture tells it."""
    paths = (storage.path for storage in site.cluster.storage.values() if not storage.node_local)
    names = sorted({name for path in paths for name in _VARIABLE.findall(path)} - {"HOME"})

    def judge(answer: Answer) -> Iterator[Finding]:
        values = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
        if answer.code not in (0, 1):
            return
        unset = [name for name in names if not values.get(name)]
        if unset:
            todo = f"in a login shell: printenv {' '.join(unset)}"
            yield question.finding(Verdict.SILENT, f"{' '.join(unset)} is not set", todo)
        else:
            yield question.finding(Verdict.OK, "are set")

    question = Question(
        name="variables of paths",
        area=AREA,
        fact="variables of the roles' paths",
        argv=("sh", "-c", 'for name; do printf "%s=" "$name"; printenv "$name" || echo; done', "ask", *names),
        judge=judge,
        expected=" ".join(names),
        inherit=True,
    )
    if names:
        yield question


def _mend(code: str) -> str:
    return "hpctrain doctor --account ACCOUNT" if code == "account" else "hpctrain help role"


def _line(role: str, storage: Storage, verdict: Verdict, text: str, todo: str = "") -> Finding:
    return Finding(
        area=AREA,
        fact=f"role {role}",
        verdict=verdict,
        expected=storage.path,
        found=text,
        source=storage.source,
        todo=todo,
    )


def folder(site: Site, role: str, storage: Storage, path: str) -> Question:
    """Whether `path` is there or can be made, and has room."""
    login = site.here
    writes = not storage.writable or (login is not None and login.name in storage.writable)

    def judge(answer: Answer) -> Iterator[Finding]:
        look = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
        if not look.get("at"):
            return
        at = look["at"]
        mend = f'[cluster.{site.cluster.name}] {role} = "/path"      (in settings), or mend [storage.{role}]'
        if "folder" not in look:
            yield _line(role, storage, Verdict.DIFFERS, f"{at} is not a folder", mend)
        elif at == "/" and path.count("/") > 1:
            yield _line(role, storage, Verdict.DIFFERS, f"{path}: nothing of it is here", mend)
        elif writes and "writable" not in look:
            who = f"you may not write to {at}"
            yield _line(role, storage, Verdict.DIFFERS, who, "ask who owns the folder; or " + mend)
        else:
            place = path if at == path else f"{path}, which will be made in {at}"
            yield _line(role, storage, Verdict.OK, place)
            yield from _judged(role, storage, list(_of_disk(look, at)), is_whole=True)

    return Question(
        name=f"role {role}",
        area=AREA,
        fact=f"role {role}",
        argv=("sh", "-c", LOOK, "look", path),
        judge=judge,
        expected=storage.path,
        source=storage.source,
        hangs=f"the file system {_mount(path)}",
        todo=f"by hand: df {path}",
    )


def _mount(path: str) -> str:
    """Where the file system of `path` is mounted, without a look at it."""
    try:
        mounts = [
            line.split()[1] for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
    except OSError:
        return path
    return max((m for m in mounts if f"{path}/".startswith(f"{m.rstrip('/')}/")), key=len, default=path)


def _of_disk(look: dict[str, str], at: str) -> Iterator[_Room]:
    kib = look.get("kib", "").split()
    files = look.get("files", "").split()
    if len(kib) != 2 or not all(word.isdecimal() for word in kib):
        return
    counts = [int(word) if word.isdecimal() else 0 for word in files] if len(files) == 2 else [0, 0]
    yield _Room(f"the file system of {at}", int(kib[0]) * 1024, int(kib[1]) * 1024, *counts)


def _quota(role: str, storage: Storage, path: str) -> Question:
    """What Lustre itself says of your quota there, your group's and your project's."""

    def judge(answer: Answer) -> Iterator[Finding]:
        if answer.out == "none\n":
            yield Finding(
                area=AREA,
                fact="quotas of Lustre",
                verdict=Verdict.UNKNOWN,
                found="lfs is not here: the site's own program may know them",
            )
            return
        rooms = list(_of_lustre(answer.out))
        if "end" not in answer.out.splitlines():
            return
        if not rooms:
            yield question.finding(Verdict.UNKNOWN, "Lustre knows no quota of yours there")
        yield from _judged(role, storage, rooms, is_whole=False)

    question = Question(
        name=f"quota {role}",
        area=AREA,
        fact=f"quota of {role}",
        argv=("sh", "-c", LUSTRE, "quota", path, str(os.getuid())),
        judge=judge,
        expected=_size(storage),
        source=storage.source,
        hangs="lfs",
        todo=f"by hand: lfs quota -h -u $USER {path}",
    )
    return question


def _of_lustre(text: str) -> Iterator[_Room]:
    for part in text.split("owner ")[1:]:
        numbers = _QUOTA.search(part)
        if numbers:
            value = {key: int(number) for key, number in numbers.groupdict().items()}
            size = (value["hard"] or value["soft"]) * 1024
            files = value["hard_files"] or value["soft_files"]
            if size or files:
                free = max(0, size - value["used"] * 1024)
                whose = f"{_OWNERS.get(part.split()[0], '')} quota"
                yield _Room(whose, size, free, files, max(0, files - value["files"]))


def _judged(role: str, storage: Storage, rooms: Sequence[_Room], *, is_whole: bool) -> Iterator[Finding]:
    """Room that is nearly used up, and limits none of which is the one in the facts.

    A whole file system may be larger than a quota in it, never smaller.
    """
    for key, unit in (("quota_gb", "GB"), ("inodes", "files")):
        expected = getattr(storage, key)
        limits = [room.of(unit) for room in rooms]
        most = float("inf") if is_whole else (expected or 0) / NEARLY
        fits = [size for _, size, _ in limits if expected and expected * NEARLY <= size <= most]
        for whose, size, free in limits:
            line = Finding(
                area=AREA,
                fact=f"room of {role} ({unit})",
                verdict=Verdict.OK,
                expected=f"{expected:,.0f} {unit}" if expected else "some is free",
                found=f"{whose}: {size:,.0f} {unit}, {free:,.0f} free",
                source=storage.source,
            )
            if size and free < size * FULL:
                todo = f"remove what you no longer need below {storage.path}"
                yield attrs.evolve(line, verdict=Verdict.DIFFERS, found=f"full: {line.found}", todo=todo)
            elif size and expected and not fits:
                mend = f"mend {key} of [storage.{role}]"
                place = (f"storage.{role}", key)
                yield attrs.evolve(line, verdict=Verdict.DIFFERS, todo=mend, key=place, value=round(size))
            elif size and not is_whole:
                yield line


def _size(storage: Storage) -> str:
    parts = [f"{storage.quota_gb:,.0f} GB" if storage.quota_gb else ""]
    parts.append(f"{storage.inodes:,} files" if storage.inodes else "")
    return ", ".join(part for part in parts if part)
