"""Golden files: the plan and the scripts of an example as text, so that a change is seen in review."""

from __future__ import annotations

import difflib
import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.cli.show.plan_text import plan_lines
from hpctrain.model.plan import Survey
from hpctrain.testing.base import Base, none
from hpctrain.testing.plugin import UPDATE, updates
from hpctrain.testing.subject import Subject
from hpctrain.ui.term import Term

GOLDEN_SCRIPTS = ("steps/train/job.sh", "steps/train/task.sh")


class GoldenChecks(Base):
    """Tests that compare plans and scripts with golden files, so that no change goes unnoticed."""

    def test_the_golden_files_still_hold(
        self, subject: Subject, example: Path, request: pytest.FixtureRequest
    ) -> None:
        folder = self._folder(subject, example)
        outputs = texts(subject, example)
        if updates(request.config):
            write(folder, outputs)
        wrong = [line for name, text in outputs.items() for line in difference(folder / name, text)]
        none(wrong[:80], f"differs from the golden copy; if that is right:  pytest {UPDATE}")

    def _folder(self, subject: Subject, example: Path) -> Path:
        if self.golden is None:
            pytest.skip("this class names no folder for golden files (`golden`)")
        if example.stem not in (self.goldens or (subject.examples[0].stem,)):
            pytest.skip("this example is not kept (`goldens`)")
        return self.golden / subject.name / example.stem


def texts(subject: Subject, example: Path) -> dict[str, str]:
    """What is kept of an example."""
    plain = Term(io.StringIO(), width=10_000)
    lines = plan_lines(subject.plan(example), Survey(is_on_cluster=False), plain, full=True)
    scripts = subject.scripts(example)
    script_texts = {path.removeprefix("steps/").replace("/", "."): scripts[path] for path in GOLDEN_SCRIPTS}
    # A warning names its file, and the checkout lies elsewhere on every machine.
    plan = "\n".join(lines).replace(f"{example.parent}/", "")
    return {"plan.txt": f"{plan}\n", **script_texts}


def write(folder: Path, outputs: Mapping[str, str]) -> None:
    """Write the golden files, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in outputs.items():
        (folder / name).write_text(text, encoding="utf-8")


def difference(path: Path, text: str) -> list[str]:
    """A unified diff; a missing file is all new."""
    expected = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(path), "now", lineterm="", n=2)
    return list(lines)
