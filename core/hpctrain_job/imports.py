"""Prove an environment: import what the named distributions bring.

`python -m hpctrain_job.imports NAME …` prints which Python it is, then one line per distribution, and ends
with 1 when one is missing or cannot be imported: in the build, minutes after the mistake, and not in the
queue. `NAME==VERSION` also proves that this version is the one that is imported, where an image below has
another, and says where it lies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path


def modules(distribution: str) -> list[str]:
    """The top-level modules that an installed distribution brings."""
    installed = metadata.distribution(distribution)
    if text := installed.read_text("top_level.txt"):
        named = text.split()
    else:
        named = [part for file in installed.files or () if (part := _module(file.parts))]
    return sorted({name for name in named if name.isidentifier() and not name.startswith("_")})


def _module(parts: Sequence[str]) -> str:
    if len(parts) == 2 and parts[1] == "__init__.py":
        return parts[0]
    if len(parts) == 1 and parts[0].endswith((".py", ".so")):
        return parts[0].split(".")[0]
    return ""


def complaint(distribution: str, version: str = "") -> str:
    """Why `distribution` cannot be used here, or nothing."""
    try:
        imported = [import_module(name) for name in modules(distribution)]
        if version:
            return _mismatch(distribution, version, [module.__file__ for module in imported])
    except metadata.PackageNotFoundError:
        return "is not installed"
    except BaseException as error:  # a broken binary may even raise SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"cannot be imported: {type(error).__name__}: {error}"
    return ""


def _mismatch(distribution: str, version: str, files: Sequence[str | None]) -> str:
    """Whether what was imported is of another version, or lies elsewhere."""
    installed, folder = metadata.version(distribution), _folder(distribution)
    if _plain(installed, version) != _plain(version, version):
        return f"is {installed}, and {version} is wanted"
    foreign = [file for file in files if file and not Path(file).resolve().is_relative_to(folder)]
    return f"is {version} in {folder}, but {foreign[0]} is imported" if foreign else ""


def _plain(version: str, request: str) -> str:
    """A version as it is compared: 2.5 is 2.5.0, and who asks for no build (`+cu121`) takes any."""
    public, plus, build = version.lower().removeprefix("v").partition("+")
    return re.sub(r"(\.0)+\Z", "", public) + (plus + build if "+" in request else "")


def _folder(distribution: str) -> Path:
    return Path(str(metadata.distribution(distribution).locate_file(""))).resolve()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    bad = 0
    print(f"python {sys.version.split()[0]} {sys.executable}", flush=True)
    for word in sys.argv[1:] if argv is None else argv:
        name, _, version = word.partition("==")
        if message := complaint(name, version):
            bad += 1
            # What is wrong must be seen in the log; the good lines are a file's.
            print(name, message, flush=True, file=sys.stderr)
        else:
            place = (_folder(name),) if version else ()
            print(name, metadata.version(name), *place, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
