"""Move the version of every distribution, or of one cluster's alone, in every file that states it.

`hpctrain` and `hpctrain-plugins` have one version. A cluster's moves with them, or alone when
its facts changed. Nothing is committed unless asked.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")
PROJECT_VERSION = re.compile(r'(?m)^(version = )"([^"]+)"')
TEMPLATES = tuple(
    f"core/hpctrain/cli/templates/plugin/{folder}pyproject.toml.txt" for folder in ("", "technology/")
)
"""What `init plugin` writes says which hpctrain it was written for."""
LOCK_STEP = re.compile(r'"(hpctrain(?:-plugins)?(?:\[[\w,]+\])?)>=[^",]+,<[^",]+"')
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "not released yet"

Edits = dict[str, str]
"""Path below the root -> its new text."""


class Refused(Exception):
    """Why no version is moved."""


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Write the new version; 2 and one line on stderr where that is refused."""
    parser = argparse.ArgumentParser(prog="make version", description=__doc__)
    parser.add_argument("new", metavar="NEW", help="the version to release, as 0.2.0 or 0.2.0rc1")
    parser.add_argument("--cluster", metavar="NAME", default="", help="move this cluster's version alone")
    parser.add_argument("--commit", action="store_true", help="commit what was changed, and tag it")
    options = parser.parse_args(words)
    try:
        changed, tag = moved(root, options.new, options.cluster)
        _refuse_a_dirty_tree(root)
    except Refused as refused:
        print(f"version: {refused}", file=sys.stderr)
        return 2
    for path, text in changed.items():
        (root / path).write_text(text, encoding="utf-8")
        print(path)
    if options.commit:
        _git(root, "commit", "-q", "-m", f"Release {tag}", "--", *changed)
        _git(root, "tag", "-a", tag, "-m", f"Release {tag}")
        print(f"committed and tagged: {tag}")
    return 0


def moved(root: Path, new: str, cluster: str = "") -> tuple[Edits, str]:
    """The files that change, and the tag of the release."""
    _parsed(new)
    edits = _one_cluster(root, cluster, new) if cluster else _everything(root, new)
    label = f"{cluster} {new}" if cluster else new
    edits[CHANGELOG] = _dated(_text(root, CHANGELOG), label)
    unchanged = [path for path, text in edits.items() if _text(root, path) == text]
    for path in unchanged:
        del edits[path]
    return edits, f"{cluster}-v{new}" if cluster else f"v{new}"


def _everything(root: Path, new: str) -> Edits:
    """`hpctrain`, `hpctrain-plugins`, and the clusters that are not further than that already."""
    _refuse_backwards(root, "", new)
    behind = [name for name in clusters(root) if _parsed(version_of(root, name)) <= _parsed(new)]
    members = ("pyproject.toml", "plugins/pyproject.toml", *(f"hpc_{name}/pyproject.toml" for name in behind))
    edits = {path: _released(_text(root, path), new, new) for path in members}
    for name in behind:  # hpctrain's extra has no upper bound: the cluster states what it works with
        extra = rf'"hpctrain-{name}>=[^"]+"'
        edits["pyproject.toml"] = re.sub(extra, f'"hpctrain-{name}>={new}"', edits["pyproject.toml"])
    for page in sorted((root / "docs").glob("*.md")):
        edits[f"docs/{page.name}"] = _ranged(page.read_text(encoding="utf-8"), new)
    citation = re.sub(r"(?m)^(version: ).*", rf"\g<1>{new}", _text(root, "CITATION.cff"))
    edits["CITATION.cff"] = re.sub(r"(?m)^(date-released: ).*", rf"\g<1>{date.today()}", citation)
    number = "core/hpctrain/versions.py"
    edits[number] = re.sub(r'(DISTRIBUTION = )".*"', rf'\1"{new}"', _text(root, number))
    for template in TEMPLATES:
        edits[template] = re.sub(r'>=VERSION,<[^"]+"', f'>=VERSION,<{_below(new)}"', _text(root, template))
    return edits


def _one_cluster(root: Path, name: str, new: str) -> Edits:
    """The cluster's own file: its version, and the hpctrain of this tree, which its tests ran with."""
    if name not in clusters(root):
        raise Refused(f"there is no cluster {name}; there are {', '.join(clusters(root))}")
    current = version_of(root)
    if f"## [{current}] - {UNRELEASED}" in _text(root, CHANGELOG):
        raise Refused(
            f"hpctrain {current}, which {name} needs, is not released yet: release both, without CLUSTER"
        )
    _refuse_backwards(root, name, new)
    path = f"hpc_{name}/pyproject.toml"
    return {path: _released(_text(root, path), new, current)}


def clusters(root: Path) -> list[str]:
    """The clusters with a distribution of their own."""
    return sorted(path.parent.name.removeprefix("hpc_") for path in root.glob("hpc_*/pyproject.toml"))


def version_of(root: Path, cluster: str = "") -> str:
    """The version that the tree states now."""
    folder = root / f"hpc_{cluster}" if cluster else root
    match = PROJECT_VERSION.search((folder / "pyproject.toml").read_text(encoding="utf-8"))
    assert match is not None, f"{folder}/pyproject.toml has no version"
    return match[2]


def _text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def _released(text: str, version: str, core: str) -> str:
    """A pyproject.toml with this version, and with the range of hpctrain that begins at `core`."""
    return _ranged(PROJECT_VERSION.sub(rf'\g<1>"{version}"', text, count=1), core)


def _ranged(text: str, version: str) -> str:
    """`text` with its ranges of hpctrain and hpctrain-plugins from `version` to the next that may break."""
    return LOCK_STEP.sub(rf'"\1>={version},<{_below(version)}"', text)


def _below(version: str) -> str:
    major, minor, *_ = _parsed(version)
    return str(major + 1) if major else f"0.{minor + 1}"


def _parsed(version: str) -> tuple[int, int, int, str, int]:
    """What versions are ordered by; a final release (z) comes after its candidates (a, b, rc)."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise Refused(f"{version!r} is not a version: write it as 0.2.0, or 0.2.0rc1 for a candidate")
    major, minor, patch, stage, number = match.groups()
    return int(major), int(minor), int(patch), stage or "z", int(number or 0)


def _dated(text: str, label: str) -> str:
    """The changelog with today's date behind the heading of this release, which must have lines below it."""
    heading = f"## [{label}] - {UNRELEASED}"
    _, found, below = f"\n{text}".partition(f"\n{heading}\n")
    if not found:
        raise Refused(f"{CHANGELOG} has no line `{heading}` with what changed for users below it")
    if not re.search(r"(?m)^- ", below.partition("\n## ")[0]):
        raise Refused(f"{CHANGELOG} lists no change below `{heading}`")
    return text.replace(heading, f"## [{label}] - {date.today()}")


def _refuse_backwards(root: Path, cluster: str, new: str) -> None:
    """The version that the tree states may be released for the first time; an earlier one may not."""
    current = version_of(root, cluster)
    if _parsed(new) < _parsed(current):
        name = f"hpctrain-{cluster}" if cluster else "hpctrain"
        raise Refused(f"{new} is before {current}, the version of {name} now")


def _refuse_a_dirty_tree(root: Path) -> None:
    if changes := _git(root, "status", "--porcelain"):
        raise Refused(f"the tree has changes that are not committed:\n{changes}")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Refused(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
