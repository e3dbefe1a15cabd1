"""The scripts: bash reads them, nothing in them waits to be filled in, headers are comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.run.system.tools import Tools
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject

PLACEHOLDER = re.compile(
    r"(?<!\?P)<[a-z][a-z0-9_-]*>|\{(?:user|account|uid|home)\}|\b(?:TODO|FIXME|CHANGEME)\b"
)
END_OF_HEADER = "set -euo pipefail"
NOT_OURS = "SC1090,SC1091,SC2034"
"""Sourced files that shellcheck is not given, and variables that they use."""


class ScriptChecks(Base):
    """What every rendered script must hold."""

    def test_bash_can_read_every_script(self, subject: Subject, example: Path, tmp_path: Path) -> None:
        paths = written(subject.scripts(example), tmp_path)
        errors = (Tools().run(("bash", "-n", str(path)), ok=range(256)).err for path in paths)
        none(
            (e.strip().replace(f"{tmp_path}/", "") for e in errors if e),
            "bash cannot read what was rendered:",
        )

    def test_shellcheck_finds_nothing(self, subject: Subject, example: Path, tmp_path: Path) -> None:
        tools = Tools()
        if tools.which("shellcheck") is None:
            pytest.skip("this computer has no shellcheck")
        paths = map(str, written(subject.scripts(example), tmp_path))
        argv = ("shellcheck", "--shell=bash", "--severity=warning", f"--exclude={NOT_OURS}", "--format=gcc")
        done = tools.run((*argv, *paths), ok=(0, 1))
        none(line.replace(f"{tmp_path}/", "") for line in done.out.splitlines())

    def test_nothing_is_left_to_fill_in(self, subject: Subject, example: Path) -> None:
        none(
            (
                f"{path}:{number}: {line.strip()}"
                for path, text in subject.scripts(example).items()
                for number, line in enumerate(text.splitlines(), 1)
                if PLACEHOLDER.search(line)
            ),
            "a placeholder that nobody will replace:",
        )

    def test_a_header_holds_comments_only(self, subject: Subject, example: Path) -> None:
        header_is_inert(subject.scripts(example))


def header_is_inert(scripts: Mapping[str, str]) -> None:
    """Before `set -e` a script has comments only: what a scheduler reads, bash must not run."""
    for path, text in scripts.items():
        header, separator, _ = text.partition(f"\n{END_OF_HEADER}\n")
        # Helpers that are sourced have no header.
        code = (
            [line for line in header.splitlines() if line and not line.startswith("#")] if separator else []
        )
        none((f"{path}: {line}" for line in code), "bash would run what stands in a header:")


def written(scripts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write the scripts below `folder`; their paths."""
    paths = []
    for name, text in scripts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
