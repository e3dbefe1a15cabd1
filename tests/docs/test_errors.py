"""`hpctrain help SLUG` explains every problem there is, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpctrain.cli.commands.help import command, sections
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.cli.table import COMMANDS
from tests.docs.codes import used

TOPICS = {"exit-codes", "run-file", "secrets", "places"}


def test_every_code_has_a_section() -> None:
    missing = {slug: place for slug, place in used().items() if slug not in sections()}
    assert not missing, f"core/hpctrain/cli/errors.md lacks: {missing}"


def test_every_section_is_a_code_or_a_topic() -> None:
    assert set(sections()) - set(used()) == TOPICS


def test_no_slug_is_the_name_of_a_command() -> None:
    assert not {*used(), *TOPICS} & {*COMMANDS, "hooks"}


def test_sections_are_sorted_and_fit_a_terminal() -> None:
    slugs = [slug for slug in sections() if slug not in TOPICS]
    assert slugs == sorted(slugs)
    assert not [line for text in sections().values() for line in text.splitlines() if len(line) > 110]


@pytest.mark.parametrize("slug", sections())
def test_help_prints_it(slug: str) -> None:
    done = CliRunner().invoke(command, [slug], obj=Out.of(Flags(), {}), standalone_mode=False)
    assert done.exception is None
    said, _, text = done.output.partition("\n\n")
    assert said == slug
    assert text.startswith(sections()[slug])  # behind it, the keys of this name
    assert len(text.split()) > 5


def test_codes_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.docs import codes

    source = (
        'X = "from-constant"\n'
        "def _refuse(code, said): raise ConfigError(Problem(code=code, message=said))\n"
        'Problem(code="one" if y else "two", message="")\n'
        'SubmitError.of("three", "")\nFault(code=X)\n_refuse("four", "")\nProblem(code=mystery)\n'
    )
    (tmp_path / "x.py").write_text(source)
    monkeypatch.setattr(codes, "ROOT", tmp_path)
    path = Path("x.py")
    with pytest.raises(AssertionError, match="which code is mystery"):
        list(codes.in_file(path, {}))
    (tmp_path / "x.py").write_text(source.rpartition("Problem")[0])
    constants = {"X": "from-constant"}
    found = {slug for slug, _ in codes.in_file(path, constants)}
    assert found == {"one", "two", "three", "four", "from-constant"}
