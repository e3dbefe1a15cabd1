"""Prove an environment: import what the named distributions bring.

`python -m hpctrain_job.imports NAME …` prints which Python it is, then one line per distribution, and ends
with 1 when one is missing or cannot be imported: in the build, minutes after the mistake, and not in the
queue.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, metadata


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


def complaint(distribution: str) -> str:
    """Why `distribution` cannot be used here, or nothing."""
    try:
        for name in modules(distribution):
            import_module(name)
    except metadata.PackageNotFoundError:
        return "is not installed"
    except BaseException as error:  # a broken binary may even raise SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"cannot be imported: {type(error).__name__}: {error}"
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    bad = 0
    print(f"python {sys.version.split()[0]} {sys.executable}", flush=True)
    for name in sys.argv[1:] if argv is None else argv:
        message = complaint(name)
        bad += bool(message)
        # The good lines are a file's; what is wrong must be seen in the log.
        print(
            f"{name} {message or metadata.version(name)}",
            flush=True,
            file=sys.stderr if message else sys.stdout,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
