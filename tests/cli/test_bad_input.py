"""What users get wrong: one clear error each, exit code 2, and nothing is written."""

from __future__ import annotations

import os
import re
import resource

import pytest

from tests.e2e.product import Product, small, tree_of

GOOD = small("true")
SECONDS = 2.0


def with_(old: str, new: str) -> bytes:
    """The good run file with one thing changed."""
    assert old in GOOD
    return GOOD.replace(old, new, 1).encode()


FILES: dict[str, tuple[bytes, str, str]] = {
    "unknown key": (with_("nodes =", "noodes ="), "unknown-key", "noodes"),
    "unknown table": (GOOD.encode() + b"\n[evironment]\nx = 1\n", "unknown-key", "evironment"),
    "wrong type": (with_("nodes = 1", 'nodes = "no"'), "wrong-type", "nodes"),
    "a list for a word": (with_('"small"', "[1]"), "wrong-type", "name"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD.encode(), "encoding", "byte order mark"),
    "not UTF-8": (with_('"small"', '"sm\xe5ll"').replace("\xe5".encode(), b"\xe5"), "encoding", "UTF-8"),
    "deep nesting": (GOOD.encode() + b"x = " + b"[" * 5000 + b"]" * 5000, "too-deep", "deep"),
    "duplicate key": (with_("nodes = 1", "nodes = 1\nnodes = 2"), "duplicate-key", "nodes"),
    "empty": (b"", "", ""),
    "only a comment": (b"# nothing\n", "", ""),
    "23 digits": (with_("nodes = 1", "nodes = 12345678901234567890123"), "", "nodes"),
    "newline in a name": (with_('"small"', '"a\\nb"'), "", "name"),
    "NUL in a word": (with_('"true"', '"a\\u0000b"'), "control-character", "argv"),
    "control character": (with_('"true"', '"a\\u001bb"'), "control-character", "argv"),
    "command in a name": (with_('"small"', '"$(touch pwned)"'), "", "name"),
    "path in a name": (with_('"small"', '"../../up"'), "", "name"),
    "no such cluster": (with_('"local"', '"frontir"'), "no-plugin", "frontir"),
    "no such trainer": (with_('use = "command"', 'use = "comand"'), "no-plugin", "comand"),
    "time 25:00:99": (with_('"5m"', '"25:00:99"'), "", "time"),
    "time 0": (with_('"5m"', '"0"'), "", "time"),
    "time -1": (with_('"5m"', '"-1"'), "", "time"),
    "time a bare number": (with_('"5m"', "90"), "wrong-type", "time"),
    "no nodes": (with_("nodes = 1", "nodes = 0"), "", "nodes"),
    "a variable with a space": (GOOD.encode() + b'\n[env]\n"A B" = "x"\n', "", "env"),
    "a file as words": (b"\x00\x01\x02\xff" * 100, "", ""),
}
SETS = ("", "=", "x", "resources.nodes", "resources.nodes=", "resources.nodes=]", "=1", "a..b=1", "a b=1",
        "resources.nodes=1\nname='x'", "noodes=1", "resources.nodes=no", "name.x=1",
        "[resources]=1")  # fmt: skip


def refused(user: Product, command: str, *args: str) -> str:
    """The one error of a command that may write nothing."""
    before = tree_of(user.home, user.folder)
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = user(command, *args, code=2, PYTHONDONTWRITEBYTECODE="1")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began < SECONDS  # of CPU
    assert tree_of(user.home, user.folder) == before
    assert done.stdout == ""
    errors = re.findall(r"^error\[([a-z-]+)\]: (.*)", done.stderr, re.MULTILINE)
    assert len(errors) == 1, done.stderr
    assert not errors[0][1].endswith("."), done.stderr
    return done.stderr


@pytest.mark.parametrize("number", range(len(FILES)), ids=list(FILES))
def test_a_bad_file_is_one_error(here: Product, number: int) -> None:
    content, code, word = list(FILES.values())[number]
    (here.folder / "run.toml").write_bytes(content)
    said = refused(here, ("check", "plan", "submit")[number % 3], "run.toml")
    assert f"error[{code}" in said
    assert word in said


@pytest.mark.parametrize("said", SETS)
def test_rubbish_in_set_is_one_error(here: Product, said: str) -> None:
    here.write(GOOD)
    refused(here, "submit", "run.toml", "--set", said)


def test_no_file_a_folder_and_no_permission(here: Product) -> None:
    assert "missing.toml" in refused(here, "plan", "missing.toml")
    assert "folder" in refused(here, "plan", str(here.folder))
    assert "run.toml" in refused(here, "plan")
    here.write(GOOD).chmod(0)
    if os.geteuid():
        refused(here, "plan", "run.toml")


def test_what_speaks_against_submitting_is_said_before_anything_is_written(here: Product) -> None:
    here.write(GOOD)
    assert "time-limit" in refused(here, "submit", "--on", "frontier", "--set", "resources.time=30d")
    here.write('secrets = ["nope"]\n' + GOOD)
    assert "error[secret]: no token found for nope" in refused(here, "submit")
    here.write(GOOD)
    before = tree_of(here.home, here.folder)
    here("submit", "--on", "frontier", code=6)
    assert tree_of(here.home, here.folder) == before


def test_paths_with_spaces_and_quotes_work(here: Product) -> None:
    here.write(GOOD, 'my run\'s "file".toml')
    here("plan", 'my run\'s "file".toml')
    title = here("submit", 'my run\'s "file".toml', "--wait").stdout.strip()
    assert here.state(title) == "done"


NO_RUNS = (("cancel",), ("status", "nope"), ("logs", "../../etc"), ("status", "a/b/c"), ("metrics", "x\ny"),
           ("status", "n" * 5000), ("logs", "small/1/2"))  # fmt: skip


@pytest.mark.parametrize("args", NO_RUNS, ids=range(len(NO_RUNS)))
def test_a_run_that_is_not_there_is_one_error(here: Product, args: tuple[str, ...]) -> None:
    assert "no-run" in refused(here, *args)


def test_all_mistakes_of_a_file_come_at_once(here: Product) -> None:
    here.write(GOOD.replace("nodes = 1", 'noodes = 1\ntime2 = "x"').replace('"5m"', "90"))
    said = here("plan", "run.toml", code=2).stderr
    assert said.count("error[") == 3
    assert "3 problems; nothing was built or submitted" in said
    assert not (here.folder / "pwned").exists()
