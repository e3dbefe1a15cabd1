"""Plugins with one fault each, and what the kit says of them: one pytest for all of a kind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from attrs import frozen

from tests.hooks.dists import distribution
from tests.patience import PATIENCE


@frozen
class Fault:
    """What stands in a plugin that is right, what takes its place, and how the kit answers."""

    old: str
    new: str
    test: str
    """Of the kit, without `test_`."""
    says: str
    """The rule, in its message."""
    subject: str = ""
    """The plugin that it is seeded into, where there are several."""


@frozen
class Verdicts:
    """The messages of the tests that failed, by class and test; and all that pytest said."""

    failed: Mapping[tuple[str, str], str]
    said: str


def seeded(source: str, fault: Fault) -> str:
    """The source of a plugin with a fault in it."""
    assert fault.old in source, fault.old
    return source.replace(fault.old, fault.new)


def judged(folder: Path, kind: str, modules: Mapping[str, str], tests: str, *only: str) -> Verdicts:
    """Install plugins of a kind by their names, and run these tests; `only` are `Class::test_name`."""
    site = folder / "site"
    for name, text in modules.items():
        module = f"hpctrain_{name}"
        distribution(site, f"acme-{name}", "1", {f"hpctrain.{kind}s": {name: module}}, {module: text})
    (folder / "test_seeded.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=verdicts.xml"]
    nodes = [f"test_seeded.py::{node}" for node in only] or ["test_seeded.py"]
    done = subprocess.run(
        [*argv, *nodes],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=240 * PATIENCE,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    failed = {}
    for case in ElementTree.parse(folder / "verdicts.xml").iter("testcase"):
        for verdict in (*case.iter("failure"), *case.iter("error")):
            test = case.get("name", "").partition("[")[0].removeprefix("test_")
            key = (case.get("classname", "").rpartition(".")[2], test)
            failed[key] = f"{verdict.get('message')}\n{verdict.text}"
    return Verdicts(failed, done.stdout)
