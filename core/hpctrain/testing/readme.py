"""The README of a plugin shows its run files as they are: what people copy must be what is tested."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject


class ReadmeChecks(Base):
    """The page that people read first."""

    def test_the_readme_shows_every_example(self, subject: Subject) -> None:
        where, text = readme(subject)
        none(
            f"{where} does not show {path.name} as it is, comments included: "
            f"paste all of {path} into a ```toml block"
            for path in subject.examples
            if path.read_text(encoding="utf-8").strip() not in text
        )


def readme(subject: Subject) -> tuple[str, str]:
    """Where it is and its text: beside the code, else the description of the installed distribution."""
    for folder in (subject.folder, subject.folder.parent):
        path = folder / "README.md"
        if path.is_file() and (path.parent == subject.folder or _is_source(path.parent)):
            return str(path), path.read_text(encoding="utf-8")
    name = subject.entry.distribution
    try:
        description = distribution(name).read_text("METADATA") or ""
    except PackageNotFoundError:
        return name, ""
    return f"the description of {name}", description


def _is_source(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()
