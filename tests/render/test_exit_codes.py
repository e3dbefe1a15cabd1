"""Scripts and programs of a job end with the same numbers for the same reasons."""

from __future__ import annotations

import re

import pytest

from hpctrain import errors
from hpctrain_job import exit_codes
from tests.house.sources import ROOT, files

NUMBER = re.compile(r"(?:\b(?:exit|return)\s+|\bcode\s*(?:==|!=|=)\s*|\b[A-Z_]*EXIT[A-Z_]*=)(\d+)\b")
BY_SHELLS = {0, 1, 2, *range(124, 256)}
"""Of bash, `timeout` and signals."""
CODES = {value for name, value in vars(exit_codes).items() if name.isupper()}
SCRIPTS = [str(path) for path in files(".sh") if path.parts[0] in ("core", "plugins")]


def numbers(script: str) -> set[int]:
    """The exit codes that a script writes or compares with."""
    code = re.sub(r"(?m)(?:^|\s)#.*$", "", script)
    return {int(number) for number in NUMBER.findall(code)} - BY_SHELLS


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_ends_with_codes_that_have_a_name(path: str) -> None:
    assert numbers((ROOT / path).read_text(encoding="utf-8")) <= CODES


def test_the_numbers_are_found() -> None:
    job = (ROOT / "core/hpctrain/render/job.sh").read_text(encoding="utf-8")
    named = {exit_codes.SAVED, exit_codes.CONFIG, exit_codes.HUNG, exit_codes.TOO_FEW_NODES}
    assert named <= numbers(job)
    assert numbers("exit 99 # exit 98\nreturn 97\n((code == 96))\ncode=95") == {99, 97, 96, 95}


def test_those_of_commands_are_theirs() -> None:
    assert errors.NotReachable.exit_code == exit_codes.NOT_REACHABLE
    assert errors.IntegrityError.exit_code == exit_codes.INTEGRITY
