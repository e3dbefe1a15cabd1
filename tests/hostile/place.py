"""Where hostile files are tried: grounds that are put in order before each, and the cage."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from attrs import frozen

from tests.hostile.cage import Cage, Ended
from tests.hostile.grounds import GROUNDS
from tests.hostile.targets import Target

GROUND = b"@{ground}"
"""Stands for the path of the ground: what is done to a file by chance does not depend on its length."""


@frozen
class Place:
    """The grounds, and the cage that commands run in."""

    folder: Path
    cage: Cage

    def run(self, target: Target, data: bytes | None, *, cover: bool = False) -> Ended:
        """The command of this target; its file holds `data`, with GROUND for its path, or what is right."""
        pristine = self._pristine(target)
        ground = self.folder / target.ground
        shutil.rmtree(ground)
        shutil.copytree(pristine, ground, symlinks=True)
        if data is not None:
            (ground / target.file).write_bytes(data.replace(GROUND, str(ground).encode()))
        path = f"{ground}/bin:{os.environ['PATH']}"
        environ = {"HOME": str(ground), "USER": "me", "PATH": path, **target.environ}
        ended = self.cage.run(target.main, target.argv, ground, environ, cover=cover)
        assert not list(self.folder.rglob("RAN")), "a hostile file was obeyed"
        assert not (ended.code and list(ground.glob("out*"))), "half a result"
        return ended

    def right(self, target: Target) -> bytes:
        """The file as the product, or its user, wrote it; the same wherever the ground is."""
        file = self._pristine(target) / target.file
        path = str(self.folder / target.ground).encode()
        return file.read_bytes().replace(path, GROUND) if file.exists() else b""

    def _pristine(self, target: Target) -> Path:
        """The ground as nothing was done to it yet."""
        pristine = self.folder / f"{target.ground}.pristine"
        if not pristine.exists():
            pristine.mkdir()
            ground = self.folder / target.ground
            ground.mkdir()
            GROUNDS[target.ground](ground)  # under the name that its files hold
            shutil.copytree(ground, pristine, symlinks=True, dirs_exist_ok=True)
        return pristine

    def fault(self, target: Target, ended: Ended) -> str:
        """What is wrong with the way in which the command ended."""
        unexpected = f"exit {ended.code}: {ended.out.strip()[-300:]}"
        return ended.fault or ("" if ended.code in target.codes else unexpected)
