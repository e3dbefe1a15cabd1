"""A model on the hub: its revisions compared with folders here, and uploaded where they are missing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.hub import leaving
from hpctrain_plugins.checkpoints.hub.retries import Retries

_OF_THE_HUB = (".gitattributes", "README.md")
"""Files that every new repository gets; a revision with no others is empty."""


@attrs.frozen
class Remote:
    """One repository on the hub, over the network."""

    api: Any
    name: str
    retries: Retries

    def make(self, *, private: bool) -> None:
        """Make the repository where it is missing."""
        self._ask(lambda: self.api.create_repo(self.name, private=private, exist_ok=True))

    def holds(self, revision: str, folder: Path) -> bool:
        """Whether the revision is there, with the same content; IntegrityError when it is another
        or when a link here leads out of the folder."""
        local_files = {n: file for n, file in leaving.files(folder).items() if n not in _OF_THE_HUB}
        remote_files = self._files(revision)
        if not remote_files:
            return False
        for path in sorted(local_files.keys() | remote_files.keys()):
            if (
                path not in local_files
                or path not in remote_files
                or not _is_same_file(local_files[path], remote_files[path])
            ):
                raise IntegrityError.of(
                    "hub-differs",
                    f"{path} of {self.name}@{revision} is not what lies in {folder}",
                    where=f"{self.name}@{revision}",
                    hint=f"hf repos branch delete {self.name} {revision}      (to publish it again)",
                )
        return True

    def upload(self, revision: str, folder: Path) -> str:
        """Publish the folder as that revision, in one commit; the commit's name."""
        from huggingface_hub import CommitOperationAdd

        files = leaving.files(folder)
        self._ask(lambda: self.api.create_branch(self.name, branch=revision, exist_ok=True))
        commit = self._ask(
            lambda: self.api.create_commit(
                repo_id=self.name,
                # What the hub's library notes in an operation is of one attempt.
                operations=[CommitOperationAdd(name, file) for name, file in files.items()],
                revision=revision,
                commit_message=revision,
            )
        )
        return str(commit.oid)

    def _files(self, revision: str) -> dict[str, Any]:
        """The files of a revision; none where there is no such revision."""
        from huggingface_hub.errors import RevisionNotFoundError

        def listed() -> dict[str, Any]:
            try:
                rows = self.api.list_repo_tree(self.name, recursive=True, revision=revision)
                return {row.path: row for row in rows if hasattr(row, "blob_id")}
            except RevisionNotFoundError:
                return {}

        files = self._ask(listed)
        return {} if set(files) <= set(_OF_THE_HUB) else _without_hubs(files)

    def _ask(self, call: Any) -> Any:
        return self.retries.ask(self.name, call)


def client() -> Any:
    """The hub's own library; it finds the token itself."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    return HfApi()


def _without_hubs(files: dict[str, Any]) -> dict[str, Any]:
    return {path: row for path, row in files.items() if path not in _OF_THE_HUB}


def _is_same_file(file: Path, row: Any) -> bool:
    size = file.stat().st_size
    if size != row.size:
        return False
    large = row.lfs is not None
    digest = hashlib.sha256() if large else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return _digest(digest, file) == str(row.lfs.sha256 if large else row.blob_id)


def _digest(into: Any, file: Path) -> str:
    for block in _blocks(file):
        into.update(block)
    return str(into.hexdigest())


def _blocks(file: Path) -> Iterable[bytes]:
    with file.open("rb") as data:
        while block := data.read(1 << 20):
            yield block
