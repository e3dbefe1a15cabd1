"""Token files by the name that a user gives: a prefix, one of the files, or nanotron's folder."""

from __future__ import annotations

from pathlib import Path

from hpctrain_tokens.indexed import Indexed
from hpctrain_tokens.nanoset import Nanoset
from hpctrain_tokens.token_file import TokenFile


def names(entry: str) -> list[Path]:
    """What `entry` names of token files, without their ends; nothing where it names none."""
    prefix = Path(entry.removesuffix(".bin").removesuffix(".idx"))
    if Path(f"{prefix}.idx").is_file():
        return [prefix]
    sets = sorted(prefix.glob("*.ds")) if prefix.is_dir() else [Path(entry.removesuffix(".index"))]
    return [path for path in sets if path.suffix == ".ds" and path.with_name(f"{path.name}.index").is_file()]


def opened(name: Path) -> TokenFile:
    """The files behind one of these names."""
    return Nanoset(name) if name.suffix == ".ds" else Indexed(name)
