"""What a Python has: `python -m hpctrain_job.packages` prints its version, then `name==version`, sorted.

Run inside a base image it makes the list that later resolutions keep to.
"""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata


def rows() -> list[str]:
    """One line a distribution; of two by one name the one that is imported."""
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] if distribution.metadata else None
        if name:
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


def main() -> int:
    """The command line of this module."""
    print("# python", ".".join(map(str, sys.version_info[:2])), platform.machine())
    print("\n".join(rows()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
