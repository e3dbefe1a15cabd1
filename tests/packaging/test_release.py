"""One command moves the versions: of everything, or of one cluster alone, on a copy of the tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from release.version import ROOT, clusters, main, version_of
from tests.packaging.conftest import Make
from tests.packaging.environment import LIMIT
from tests.packaging.places import OWN

FRONTIER = "hpc_frontier/pyproject.toml"
NOW = version_of(ROOT)
MAJOR, MINOR, PATCH = (int(word) for word in NOW.split("."))
NEXT, AFTER_NEXT = (f"{MAJOR}.{MINOR + more}" for more in (1, 2))
FURTHER = f"{MAJOR}.{MINOR}.{PATCH + 100}"
"""A version of one cluster, beyond what any has in this tree."""
COPIED = ("core", "plugins", "hpc_*", "docs", "README.md", "LICENSE", "CITATION.cff", "pyproject.toml")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a release changes, in a repository of its own, before its version is released."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "you")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "you@example.org")
    folder = tmp_path / "tree"
    for name in git(ROOT, "ls-files", *COPIED).split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{NOW}] - not released yet\n\n- All of it.\n")
    git(folder, "init", "-q")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")


def note(folder: Path, label: str, line: str = "- Something changed.") -> None:
    """What somebody writes into the changelog before a release."""
    path = folder / "CHANGELOG.md"
    head, mark, below = path.read_text().partition("\n## [")
    path.write_text(f"{head}\n## [{label}] - not released yet\n\n{line}\n{mark}{below}")
    commit(folder)


def changed(folder: Path) -> set[str]:
    """The files of the last commit."""
    return set(git(folder, "show", "--name-only", "--format=").split())


def test_every_file_has_the_new_version(tree: Path) -> None:
    new = f"{NEXT}.0"
    note(tree, new)
    assert main([new], tree) == 0
    assert {version_of(tree, name) for name in ("", *clusters(tree))} == {new}
    texts = {path: (tree / path).read_text(encoding="utf-8") for path in git(tree, "ls-files").split()}
    assert f'DISTRIBUTION = "{new}"' in texts["core/hpctrain/versions.py"]
    assert f"version: {new}\ndate-released: {date.today()}\n" in texts["CITATION.cff"]
    assert f"\n## [{new}] - {date.today()}\n" in texts["CHANGELOG.md"]
    assert f'"hpctrain>={new},<{AFTER_NEXT}"' in texts[FRONTIER]
    assert f'"hpctrain-frontier>={new}"' in texts["pyproject.toml"]
    ranges = {found for text in texts.values() for found in re.findall(r'"hpctrain\S*?>=([^"]+)"', text)}
    assert ranges == {f"{new},<{AFTER_NEXT}", new, f"VERSION,<{AFTER_NEXT}"}
    assert git(tree, "tag") == ""


def test_the_first_release_only_dates_what_is_there(tree: Path) -> None:
    assert main([NOW, "--commit"], tree) == 0
    assert changed(tree) <= {"CHANGELOG.md", "CITATION.cff"}
    assert f"## [{NOW}] - {date.today()}\n" in (tree / "CHANGELOG.md").read_text()
    assert git(tree, "tag").split() == [f"v{NOW}"]
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((NEXT,), f"'{NEXT}' is not a version: write it as 0.2.0"),
        (("v9.2.0",), "'v9.2.0' is not a version"),
        (("0.0.9",), f"0.0.9 is before {NOW}, the version of hpctrain now"),
        ((f"{NOW}rc1",), f"{NOW}rc1 is before {NOW}"),
        (("98.0.0",), "CHANGELOG.md has no line `## [98.0.0] - not released yet`"),
        (("99.0.0",), "CHANGELOG.md lists no change below `## [99.0.0]"),
        ((FURTHER, "--cluster", "lumi"), "there is no cluster lumi; there are alps, frontier"),
        ((FURTHER, "--cluster", "frontier"), f"hpctrain {NOW}, which frontier needs, is not released yet"),
    ],
)
def test_it_is_refused(
    tree: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    note(tree, "99.0.0", line="Soon.")
    assert main(words, tree) == 2
    assert message in capsys.readouterr().err
    assert git(tree, "status", "--porcelain") == ""


def test_a_dirty_tree_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "README.md").write_text("changed")
    assert main([NOW], tree) == 2
    assert "README.md" in capsys.readouterr().err
    assert git(tree, "diff", "--name-only").split() == ["README.md"]


def test_a_cluster_that_is_further_stays_where_it_is(tree: Path) -> None:
    assert main([NOW, "--commit"], tree) == 0
    note(tree, f"frontier {FURTHER}")
    assert main([FURTHER, "--cluster", "frontier", "--commit"], tree) == 0
    new = f"{MAJOR}.{MINOR}.{PATCH + 99}"
    note(tree, new)
    assert main([new, "--commit"], tree) == 0
    others = set(clusters(tree)) - {"frontier"}
    assert version_of(tree, "frontier") == FURTHER
    assert {version_of(tree, name) for name in ("", *others)} == {new}
    assert set(git(tree, "tag").split()) == {f"frontier-v{FURTHER}", f"v{NOW}", f"v{new}"}


def test_one_cluster_is_released_without_the_others(
    tree: Path, dist: Path, make: Make, tmp_path: Path
) -> None:
    assert main([NOW, "--commit"], tree) == 0
    note(tree, f"frontier {FURTHER}")
    assert main([FURTHER, "--cluster", "frontier", "--commit"], tree) == 0
    assert changed(tree) == {"CHANGELOG.md", FRONTIER}
    newer = tmp_path / "newer"
    argv = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(newer))
    subprocess.run(argv, cwd=tree / "hpc_frontier", check=True, timeout=LIMIT, capture_output=True)
    environment = make(OWN, "hpctrain[clusters]", f"--find-links={newer}")
    installed = set(environment.pip("list", "--format=freeze").split())
    assert {f"hpctrain-frontier=={FURTHER}", f"hpctrain=={NOW}", f"hpctrain-plugins=={NOW}"} <= installed
    assert environment.pip("check").strip() == "No broken requirements found."
    example = tree / "hpc_frontier/hpc_frontier/examples/tutorial.toml"
    done = environment.run("hpctrain", "plan", str(example), "--account", "abc123")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on frontier" in done.stdout
