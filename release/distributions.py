"""Which distributions a tag releases, for the workflow of the forge.

usage: python3 -m release.distributions [--folders] TAG
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from release.version import ROOT, clusters, version_of


def released(tag: str, root: Path = ROOT) -> dict[str, str]:
    """Distribution, as its files are named -> its folder; ValueError where the tree has another version."""
    match = re.fullmatch(r"(?:(\w+)-)?v(\S+)", tag)
    if match is None:
        raise ValueError(f"{tag!r} is not a tag of a release: v0.2.0, or frontier-v0.1.1")
    cluster, version = match[1] or "", match[2]
    if cluster and cluster not in clusters(root):
        raise ValueError(f"{tag}: there is no cluster {cluster}")
    if version_of(root, cluster) != version:
        raise ValueError(f"{tag}: the tree is at {version_of(root, cluster)}")
    if cluster:
        return {f"hpctrain_{cluster}": f"hpc_{cluster}"}
    fitting = [name for name in clusters(root) if version_of(root, name) == version]
    return {
        "hpctrain": ".",
        "hpctrain_plugins": "plugins",
        **{f"hpctrain_{name}": f"hpc_{name}" for name in fitting},
    }


def main() -> int:
    """Print them: a JSON list of names for a matrix, or their folders one to a line."""
    *options, tag = sys.argv[1:] or [""]
    try:
        found = released(tag)
    except ValueError as error:
        print(f"distributions: {error}", file=sys.stderr)
        return 2
    print("\n".join(found.values()) if options == ["--folders"] else json.dumps(list(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
