"""What is known of a file before it arrives, and whether it is what arrived."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Proof:
    """A size, a SHA-256 or git's name of the content; nothing known proves nothing."""

    size: int | None = None
    sha256: str = ""
    git: str = ""

    @property
    def has_digest(self) -> bool:
        """A digest is there, so that content can be trusted without asking its server."""
        return bool(self.sha256 or self.git)

    def complaint(self, path: Path) -> str:
        """What is wrong with `path`, or nothing."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"{size} bytes arrived, {self.size} were announced"
        if self.sha256 and (actual := _digest(path, hashlib.sha256())) != self.sha256:
            return f"sha256 is {actual[:12]}…, {self.sha256[:12]}… was pinned"
        if self.git and not self.sha256 and (actual := git_name(path)) != self.git:
            return f"git's name of the content is {actual[:12]}…, {self.git[:12]}… was pinned"
        return ""


def git_name(path: Path) -> str:
    """The name git gives this content: what a hub says of its small files."""
    # SHA-1 is git's choice; it only has to notice an error page or a short body here.
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % path.stat().st_size)
    return _digest(path, digest)


def _digest(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
