"""What `hpctrain help WORD` knows of keys, tables and classes."""

from __future__ import annotations

from hpctrain.cli.show.classes import library, values
from hpctrain.cli.show.sections import Section
from hpctrain.cli.show.tables import cluster_file, run_file, settings


def about(topic: str) -> list[Section]:
    """What there is on `place`, `Layer`, `submit_env`, `resources.time`, `values`, `run-file`; [] when
    nobody knows the word."""
    classes = _classes()
    if topic.lower() == "values":
        return classes
    sections = [*(section for tables in _files().values() for section in tables), *classes]
    matches = [section for section in sections if topic.lower() in section.topics]
    matches += keys(topic)
    return matches or [member for section in classes if (member := section.on_row(topic))]


def keys(topic: str) -> list[Section]:
    """The keys of files that are called so; of `run-file`, `cluster-file` and `settings` every table."""
    files = _files()
    tables = (section for sections in files.values() for section in sections)
    rows = [member for section in tables if (member := section.on_row(topic))]
    return [*files.get(topic.lower(), ()), *rows]


def topics() -> set[str]:
    """Every word for which `about` has a section."""
    files, classes = _files(), _classes()
    sections = [section for tables in files.values() for section in tables] + classes
    rows = {row.name.partition("(")[0].lower() for section in sections for row in section.rows}
    return {*files, "values", *rows, *(topic for section in sections for topic in section.topics)}


def _files() -> dict[str, list[Section]]:
    return {"cluster-file": cluster_file(), "run-file": run_file(), "settings": settings()}


def _classes() -> list[Section]:
    return [*(section for sections in values().values() for section in sections), *library()]
