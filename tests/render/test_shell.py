"""Hostile words arrive as they are and run nothing: proven with a real bash."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.errors import ConfigError
from hpctrain.model.layer import EnvVar, File, How, Quote
from hpctrain.model.plan import Binding
from hpctrain.model.words import Cmd, Join, Loc, Secret, Var, template
from hpctrain.render import files, shell
from tests.patience import PATIENCE

BINDING = Binding(roots={"data": "/fs/it's here", "late": Join("/x/", Var("WHO"))}, user="ada")
HOSTILE = [
    "",
    "a b",
    "it's",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a\nb",
    "-n",
    "*",
    "~",
    "!x",
    '"',
    "\\",
    "é\t",
]


def bash(text: str, **env: str) -> bytes:
    done = subprocess.run(
        ["bash", "-c", text],
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", **env},
        timeout=20 * PATIENCE,
    )
    return done.stdout


def arrived(argv: tuple[object, ...], **env: str) -> list[str]:
    out = bash("printf '%s\\0' " + shell.words(argv, BINDING), **env)  # type: ignore[arg-type]
    return out.decode("utf-8", "surrogateescape").split("\0")[:-1]


def test_hostile_words_survive_and_are_inert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert arrived(tuple(HOSTILE)) == HOSTILE
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=6
    )
)
def test_any_text_survives(words: list[str]) -> None:
    assert arrived(tuple(words)) == words


def test_late_words_join_without_a_space() -> None:
    words = (Join("--data=", Loc("data", "a b/$x")), Join(Loc("late"), "/c"), template("/tmp/${WHO}/y"))
    assert arrived(words, WHO="a d a") == ["--data=/fs/it's here/a b/$x", "/x/a d a/c", "/tmp/a d a/y"]


def test_no_word_becomes_text_by_accident() -> None:
    for word in (Var("A"), Loc("data"), Secret("hf"), Join("a", Var("B"))):
        with pytest.raises(TypeError, match="bound late"):
            f"{word}"
        with pytest.raises(TypeError, match="bound late"):
            str(word)


def test_a_secret_is_only_a_variables_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="may only be a variable's value"):
        shell.command(Cmd.of("curl", Secret("hf")), BINDING)
    (tmp_path / "hf").write_text("hf_tok en")
    line = shell.variable(EnvVar(name="T", value=Secret("hf"), why="the hub asks"), BINDING)
    assert bash(f'set -eu; {line}\nprintf %s "$T"', HPC_SECRETS=str(tmp_path)) == b"hf_tok en"


@pytest.mark.parametrize(
    ("how", "before", "after"),
    [
        (How.SET, {"A": "old"}, "new"),
        (How.DEFAULT, {"A": "old"}, "old"),
        (How.DEFAULT, {}, "new"),
        (How.DEFAULT, {"A": ""}, ""),
        (How.PREPEND, {"A": "old"}, "new:old"),
        (How.PREPEND, {}, "new"),
        (How.UNSET, {"A": "old"}, "(none)"),
    ],
)
def test_variables_meet_what_is_there(how: How, before: dict[str, str], after: str) -> None:
    line = shell.variable(EnvVar(name="A", value="new", how=how, why="x\n$(touch PWNED)"), BINDING)
    out = bash(f'set -eu\n{line}\nprintf %s "${{A-(none)}}"', **before)
    assert out.decode() == after


@pytest.mark.parametrize("name", ["A B", "A$(x)", "1A", "", "A=B", "Ä"])
def test_a_variables_name_is_never_shell(name: str) -> None:
    with pytest.raises(ConfigError, match="name of a variable"):
        shell.variable(EnvVar(name=name, value="x", why="x"), BINDING)


def test_a_file_holds_locations_as_json() -> None:
    file = File(path="x.json", body=('{"data": ', Loc("data", 'a"b'), "}"), quote=Quote.JSON)
    assert json.loads(files.text(file, BINDING)) == {"data": "/fs/it's here/a\"b"}


def test_a_file_refuses_what_only_a_job_knows() -> None:
    with pytest.raises(ConfigError, match="only known in the job"):
        files.text(File(path="x", body=(Loc("late"),)), BINDING)


def test_an_unknown_role_is_named() -> None:
    with pytest.raises(ConfigError, match='no storage role "dat"'):
        shell.word(Loc("dat"), BINDING)


def test_a_file_that_only_the_job_can_write_is_written_there(tmp_path: Path) -> None:
    file = File(path="x.json", body=('{"a": ', Loc("late", 'b"c\\'), ', "t": "it\'s"}'), quote=Quote.JSON)
    assert files.is_late(file, BINDING)
    assert not files.is_late(File(path="x", body=(Loc("data"),)), BINDING)
    lines = files.written_by_job(str(tmp_path / "x.json"), file, BINDING)
    helper = Path(files.__file__).with_name("job.sh")
    bash("\n".join([f". {helper}", *lines]), WHO="a d'a")
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": "/x/a d'a/b\"c\\", "t": "it's"}
