"""Move the project's address: the one of pyproject.toml is replaced in every tracked file that has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from release.version import ROOT


def address(root: Path = ROOT) -> str:
    """The address that pyproject.toml calls Homepage; all others follow from it."""
    match = re.search(r'(?m)^Homepage = "([^"]+)"', (root / "pyproject.toml").read_text(encoding="utf-8"))
    assert match is not None, "pyproject.toml has no Homepage"
    return match[1]


def holders(root: Path = ROOT) -> list[Path]:
    """The tracked files that have the address in them."""
    argv = ("git", "grep", "-lF", address(root))
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    return [root / line for line in done.stdout.splitlines()]


def main() -> int:
    """Write the address that the command line names into all of them."""
    if len(sys.argv) != 2 or not re.fullmatch(r"https://\S+[^/\s]", sys.argv[1]):
        print("usage: python3 -m release.address https://HOST/PATH", file=sys.stderr)
        return 2
    old = address()
    for path in holders():
        path.write_text(path.read_text(encoding="utf-8").replace(old, sys.argv[1]), encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
