"""The model hub: what huggingface_hub asks for snapshots, uploads, branches and tags.

Tokens: `hf_twin` may write, `hf_read` may read what is gated or private; any other one is a stranger's.
Large files go by git-lfs in one part; the hub's newer chunk store (xet) is not spoken here, so clients
that would upload by it are told so (README.md: how they use git-lfs).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tests.twin.services.http import Answer, Ask, File, Server, serving
from tests.twin.services.store import Entry, Record, Store, is_large

WRITER, READER = "hf_twin", "hf_read"
REPOSITORY = r"/api/(models|datasets)/([^/]+/[^/]+)"


class Refused(Exception):
    """An answer that ends the question."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message} if code else {"X-Error-Message": message}
        self.answer = Answer(status, json.dumps({"error": message}).encode(), headers)


@dataclass(frozen=True)
class Place:
    """A repository that the question is about."""

    kind: str
    name: str
    record: Record


class Hub:
    """A service: `Hub(folder)(ask)`."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)

    def __call__(self, ask: Ask) -> Answer:
        """Find who answers."""
        for method, pattern, function in ROUTES:
            match = re.fullmatch(pattern, ask.path)
            if match and ask.method in (method, "HEAD" if method == "GET" else method):
                words = [unquote(word or "") for word in match.groups()]
                try:
                    return function(self, ask, *words)
                except Refused as refused:
                    return refused.answer
        return Answer(404, b"not found")

    def place(self, ask: Ask, kind: str, name: str) -> Place:
        """A repository that the asker may read."""
        record = self.store.load(kind, name)
        if record is None or (record.private and ask.token not in (WRITER, READER)):
            # a stranger does not learn whether it exists
            raise Refused(404 if ask.token else 401, "Repository Not Found", "RepoNotFound")
        return Place(kind, name, record)

    def open(self, ask: Ask, place: Place) -> None:
        """Refuse whoever has not asked for a gated repository."""
        if self.store.gated(place.kind, place.name) and ask.token not in (WRITER, READER):
            raise Refused(403 if ask.token else 401, f"Access to {place.name} is restricted", "GatedRepo")

    def writer(self, ask: Ask) -> None:
        """Refuse whoever may not write."""
        if ask.token != WRITER:
            raise Refused(403 if ask.token == READER else 401, "You need a token that may write")

    def commit(self, place: Place, revision: str) -> tuple[str, dict[str, Entry]]:
        """The commit of a revision and its files."""
        name = place.record.resolve(revision)
        if not name:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return name, place.record.commits[name].files

    @contextlib.contextmanager
    def change(self, ask: Ask, kind: str, name: str) -> Iterator[Place]:
        """A repository that the asker changes."""
        self.writer(ask)
        with self.store.lock:
            place = self.place(ask, kind, name)
            yield place
            self.store.save(kind, name, place.record)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """The hub alone on loopback: `server.url` is what HF_ENDPOINT wants."""
    with serving({"hub": Hub(folder)}, folder) as server:
        yield server


def _json(said: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(said).encode(), {"Content-Type": "application/json"})


def _row(entry: Entry) -> dict[str, object]:
    row: dict[str, object] = {"size": entry.size}
    if entry.large:
        row["lfs"] = {"size": entry.size, "pointerSize": 130}
    return row


def info(hub: Hub, ask: Ask, kind: str, name: str, revision: str = "main") -> Answer:
    """What there is to know of a repository."""
    place = hub.place(ask, kind, name)
    gated = hub.store.gated(kind, name)
    hub.open(ask, place)
    sha, files = hub.commit(place, revision)
    siblings = []
    for path, entry in sorted(files.items()):
        row = {"rfilename": path, "blobId": entry.blob, **_row(entry)}
        if isinstance(large := row.get("lfs"), dict):
            large["sha256"] = entry.sha256
        siblings.append(row)
    return _json({
        "_id": "0", "id": name, "modelId": name, "sha": sha, "private": place.record.private, "gated": gated,
        "disabled": False, "downloads": 0, "likes": 0, "tags": [], "siblings": siblings,
        "createdAt": "2026-01-01T00:00:00.000Z", "lastModified": "2026-01-01T00:00:00.000Z",
    })  # fmt: skip


def _listed(path: str, entry: Entry) -> dict[str, object]:
    row = {"type": "file", "path": path, "oid": entry.blob, **_row(entry)}
    if isinstance(large := row.get("lfs"), dict):
        large["oid"] = entry.sha256
    return row


def tree(hub: Hub, ask: Ask, kind: str, name: str, revision: str, below: str = "") -> Answer:
    """The files of a revision."""
    place = hub.place(ask, kind, name)
    hub.open(ask, place)
    _, files = hub.commit(place, revision)
    prefix = f"{below}/" if below else ""
    return _json([_listed(path, entry) for path, entry in sorted(files.items()) if path.startswith(prefix)])


def paths_info(hub: Hub, ask: Ask, kind: str, name: str, revision: str) -> Answer:
    """Some files of a revision."""
    place = hub.place(ask, kind, name)
    _, files = hub.commit(place, revision)
    wanted = {value for field, value in ask.form if field == "paths"}
    return _json([_listed(path, entry) for path, entry in sorted(files.items()) if path in wanted])


def refs(hub: Hub, ask: Ask, kind: str, name: str) -> Answer:
    """Branches and tags."""
    record = hub.place(ask, kind, name).record

    def rows(names: dict[str, str], where: str) -> list[dict[str, str]]:
        return [{"name": n, "ref": f"refs/{where}/{n}", "targetCommit": c} for n, c in sorted(names.items())]

    said = {"branches": rows(record.branches, "heads"), "tags": rows(record.tags, "tags")}
    return _json({**said, "converts": [], "pullRequests": []})


def commits(hub: Hub, ask: Ask, kind: str, name: str, revision: str) -> Answer:
    """The history of a revision, newest first."""
    place = hub.place(ask, kind, name)
    head, _ = hub.commit(place, revision)
    rows = [
        {"id": sha, "title": commit.title, "message": "", "authors": [{"user": "alice"}],
         "date": "2026-01-01T00:00:00.000Z"}
        for sha, commit in place.record.history(head)
    ]  # fmt: skip
    return _json(rows)


def resolve(hub: Hub, ask: Ask, kind: str, name: str, revision: str, path: str) -> Answer:
    """One file."""
    place = hub.place(ask, "datasets" if kind else "models", name)
    hub.open(ask, place)
    sha, files = hub.commit(place, revision)
    if path not in files:
        raise Refused(404, "Entry not found", "EntryNotFound")
    entry = files[path]
    tag = f'"{entry.sha256 if entry.large else entry.blob}"'
    headers = {"ETag": tag, "X-Repo-Commit": sha, "Content-Type": "application/octet-stream"}
    if entry.large:
        headers |= {"X-Linked-Size": str(entry.size), "X-Linked-ETag": tag}
    return Answer(200, File(hub.store.object(entry.sha256)), headers)


def whoami(hub: Hub, ask: Ask) -> Answer:
    """Whose token it is."""
    role = {WRITER: "write", READER: "read"}.get(ask.token)
    if role is None:
        raise Refused(401, "Invalid username or password.")
    token = {"accessToken": {"displayName": "twin", "role": role}}
    return _json({"type": "user", "name": "alice", "orgs": [{"name": "org"}], "auth": token})


def create(hub: Hub, ask: Ask) -> Answer:
    """A new repository with an empty first commit."""
    hub.writer(ask)
    said = json.loads(ask.body.read())
    kind = f"{said.get('type') or 'model'}s"
    name = f"{said.get('organization') or 'alice'}/{said['name']}"
    url = {"url": f"{ask.url}/{'datasets/' if kind == 'datasets' else ''}{name}", "name": name}
    with hub.store.lock:
        if hub.store.load(kind, name) is not None:
            return _json({**url, "error": "You already created this repo"}, 409)
        record = Record(private=bool(said.get("private") or said.get("visibility") == "private"))
        record.add("main", {}, "initial commit")
        hub.store.save(kind, name, record)
    return _json(url)


def validate(hub: Hub, ask: Ask) -> Answer:
    """The card's metadata: taken as they are."""
    return _json({"errors": [], "warnings": []})


def branch(hub: Hub, ask: Ask, kind: str, name: str, wanted: str) -> Answer:
    """A new branch."""
    said = json.loads(ask.body.read() or b"{}")
    with hub.change(ask, kind, name) as place:
        if wanted in place.record.branches:
            raise Refused(409, f"Reference already exists: {wanted}")
        place.record.branches[wanted], _ = hub.commit(place, said.get("startingPoint") or "main")
    return _json({})


def forget_branch(hub: Hub, ask: Ask, kind: str, name: str, wanted: str) -> Answer:
    """A branch goes; its commits stay."""
    with hub.change(ask, kind, name) as place:
        if wanted == "main" or not place.record.branches.pop(wanted, ""):
            raise Refused(404, f"Invalid rev id: {wanted}", "RevisionNotFound")
    return _json({})


def tag(hub: Hub, ask: Ask, kind: str, name: str, revision: str) -> Answer:
    """A new tag."""
    wanted = json.loads(ask.body.read())["tag"]
    with hub.change(ask, kind, name) as place:
        if wanted in place.record.tags:
            raise Refused(409, f"Reference already exists: {wanted}")
        place.record.tags[wanted], _ = hub.commit(place, revision)
    return _json({})


def preupload(hub: Hub, ask: Ask, kind: str, name: str, revision: str) -> Answer:
    """How each file wants to come, and what is there already."""
    hub.writer(ask)
    place = hub.place(ask, kind, name)
    _, files = hub.commit(place, revision)
    rows = []
    for said in json.loads(ask.body.read())["files"]:
        path = said["path"]
        large = is_large(path, said["size"])
        there = files.get(path)
        oid = (there.sha256 if there.large else there.blob) if there else None
        mode = "lfs" if large else "regular"
        rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
    return _json({"files": rows})


def batch(hub: Hub, ask: Ask, kind: str, name: str) -> Answer:
    """Where large files go; what is there already need not come again."""
    hub.writer(ask)
    hub.place(ask, "datasets" if kind else "models", name)
    rows = []
    for said in json.loads(ask.body.read())["objects"]:
        row = {"oid": said["oid"], "size": said["size"]}
        if not hub.store.object(said["oid"]).exists():
            there = f"{ask.url}/lfs/{said['oid']}"
            row["actions"] = {"upload": {"href": there}, "verify": {"href": f"{there}/verify"}}
        rows.append(row)
    return Answer(
        200,
        json.dumps({"transfer": "basic", "objects": rows}).encode(),
        {"Content-Type": "application/vnd.git-lfs+json"},
    )


def put(hub: Hub, ask: Ask, oid: str) -> Answer:
    """A large file comes; only whole ones are kept."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=hub.store.folder / ".objects", delete=False) as file:
        try:
            for piece in ask.body.pieces():
                digest.update(piece)
                file.write(piece)
        except ConnectionError:
            Path(file.name).unlink()
            raise
    if digest.hexdigest() != oid:
        Path(file.name).unlink()
        raise Refused(400, "the content has another hash")
    Path(file.name).replace(hub.store.object(oid))
    return Answer(200, headers={"ETag": f'"{oid}"'})


def verify(hub: Hub, ask: Ask, oid: str) -> Answer:
    """Is a large file there with the size that was announced?"""
    there = hub.store.object(oid)
    if not there.exists() or there.stat().st_size != json.loads(ask.body.read())["size"]:
        raise Refused(404, "not uploaded")
    return _json({})


def commit(hub: Hub, ask: Ask, kind: str, name: str, revision: str) -> Answer:
    """A commit: a header, then one line a file."""
    lines = [json.loads(line) for line in ask.body.read().splitlines() if line.strip()]
    header = lines[0]["value"]
    with hub.change(ask, kind, name) as place:
        if revision not in place.record.branches:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        parent = header.get("parentCommit")
        if parent and parent != place.record.branches[revision]:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        files = dict(hub.commit(place, revision)[1])
        for line in lines[1:]:
            _apply(hub, files, line["key"], line["value"])
        sha = place.record.add(revision, files, header["summary"])
    return _json({"success": True, "commitOid": sha, "commitUrl": f"{ask.url}/{name}/commit/{sha}"})


def _apply(hub: Hub, files: dict[str, Entry], what: str, said: dict[str, str]) -> None:
    path = said["path"]
    if what == "file":
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(said["content"]))
            file.flush()
            files[path] = hub.store.entry(path, Path(file.name))
    elif what == "lfsFile":
        there = hub.store.object(said["oid"])
        if not there.exists():
            raise Refused(400, f"LFS pointer pointed to a file that does not exist: {path}")
        files[path] = hub.store.known(path, said["oid"], there.stat().st_size, large=True)
    elif what == "deletedFile":
        files.pop(path, None)
    elif what == "deletedFolder":
        for name in [name for name in files if name.startswith(path.rstrip("/") + "/")]:
            del files[name]


Route = tuple[str, str, Callable[..., Answer]]
LFS = r"/(datasets/)?([^/]+/[^/]+)"
ROUTES: tuple[Route, ...] = (
    ("GET", REPOSITORY, info),
    ("GET", rf"{REPOSITORY}/revision/([^/]+)", info),
    ("GET", rf"{REPOSITORY}/tree/([^/]+)(?:/(.+))?", tree),
    ("GET", rf"{REPOSITORY}/refs", refs),
    ("GET", rf"{REPOSITORY}/commits/([^/]+)", commits),
    ("GET", rf"{LFS}/resolve/([^/]+)/(.+)", resolve),
    ("GET", "/api/whoami-v2", whoami),
    ("POST", "/api/repos/create", create),
    ("POST", "/api/validate-yaml", validate),
    ("POST", rf"{REPOSITORY}/paths-info/([^/]+)", paths_info),
    ("POST", rf"{REPOSITORY}/branch/([^/]+)", branch),
    ("DELETE", rf"{REPOSITORY}/branch/([^/]+)", forget_branch),
    ("POST", rf"{REPOSITORY}/tag/([^/]+)", tag),
    ("POST", rf"{REPOSITORY}/preupload/([^/]+)", preupload),
    ("POST", rf"{REPOSITORY}/commit/([^/]+)", commit),
    ("POST", rf"{LFS}\.git/info/lfs/objects/batch", batch),
    ("PUT", r"/lfs/([0-9a-f]{64})", put),
    ("POST", r"/lfs/([0-9a-f]{64})/verify", verify),
)
