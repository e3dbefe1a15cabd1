"""Streams, widths, colours, JSON and codes: the same meaning wherever the words go."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from hpctrain.cli.app import Commands
from tests.cli.terminal import on_terminal
from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for, within

CODES = re.compile(r"\x1b\[[0-9;]*m")
METRICS = r'printf "{\"step\":%d,\"loss\":%d.5}\n" 1 3 2 2 3 1 > "$HPC_RUN/metrics.jsonl"; echo done'
READING = (
    ("plan", "run.toml"),
    ("plan", "run.toml", "--on", "all"),
    ("plan", "run.toml", "--explain", "PYTHONUNBUFFERED"),
    ("check", "run.toml"),
    ("diff", "run.toml", "--on", "local", "--on", "frontier"),
    ("status",),
    ("runs",),
    ("metrics",),
    ("clusters",),
    ("clusters", "frontier"),
    ("plugins",),
)
WRONG = (
    ("plan", "nothing.toml"),
    ("plan", "run.toml", "--set", "noodes=1"),
    ("status", "nope"),
    ("logs", "small", "nope"),
    ("plan", "run.toml", "--explain", "NOPE"),
    ("clusters", "nope"),
    ("nope",),
    ("plan", "--nope"),
    ("diff", "run.toml"),
    ("init",),
    ("submit", "run.toml", "--on", "frontier"),
)


@pytest.fixture
def used(here: Product) -> Product:
    """A user with one finished run."""
    here.write(small(METRICS))
    here("submit", "run.toml", "--wait")
    return here


def test_json_of_every_reading_command(used: Product) -> None:
    for args in READING:
        done = used(*args, "--json", "--quiet")
        document = json.loads(done.stdout)
        assert document["schema"].startswith("hpctrain/"), args
        assert done.stdout.count("\n") == 1
        assert done.stderr == "", args
        plain = used(*args)
        assert plain.stdout, args
        assert "\x1b" not in plain.stdout + plain.stderr
        assert "next:" not in plain.stderr


def test_an_error_is_a_document_with_the_same_code(used: Product) -> None:
    for args in WRONG:
        plain, done = used(*args, code=None), used(*args, "--json", code=None)
        assert plain.returncode == done.returncode != 0, args
        assert plain.stdout == ""
        document = json.loads(done.stdout)
        assert document["schema"] == "hpctrain/problems/1"
        assert document["problems"][0]["message"]
        assert done.stderr == plain.stderr


def test_a_wait_ends_in_one_document(used: Product) -> None:
    waited = used.json("submit", "run.toml", "--wait")
    assert waited["schema"] == "hpctrain/submit/1"
    used.write(small("exit 3"), "bad.toml")
    (problem,) = used.json("submit", "bad.toml", "--wait", code=8)["problems"]
    assert problem["code"] == "job-failed"


def test_stdout_is_the_data(used: Product) -> None:
    assert used("submit", "run.toml").stdout == "small/2\n"
    assert used("logs", "small/1").stdout == "done\n"
    assert used("eject", "run.toml").stdout == f"{used.folder}/small-local/run.sh\n"
    assert used("plan", "run.toml").stderr == ""


@pytest.mark.parametrize("columns", [36, 80])
def test_nothing_is_wider_than_the_terminal(used: Product, columns: int) -> None:
    for args in (*READING, WRONG[1], WRONG[4]):
        shown = on_terminal(used, *args, columns=columns, NO_COLOR="1")
        wide = [line for line in shown.splitlines() if len(line) > columns]
        pasted = [line for line in wide if line.startswith(("help:", "next:", "      "))]
        assert wide == pasted, args


def test_colour_changes_no_word(used: Product) -> None:
    for args in (READING[0], READING[1], READING[2], READING[5]):
        plain = used(*args, COLUMNS="80").stdout
        coloured = used(*args, "--color", "always", COLUMNS="80").stdout
        assert CODES.sub("", coloured) == plain
    assert "\x1b" in used("status", "--color=always").stdout
    assert "\x1b" not in on_terminal(used, "status", NO_COLOR="1")
    assert "\x1b" in on_terminal(used, "status")


def test_ascii_has_only_ascii(used: Product) -> None:
    for args in READING:
        shown = used(*args, LANG="C")
        assert (shown.stdout + shown.stderr).isascii(), args
    for said in (used("plan", HPCTRAIN_ASCII="1"), used("plan", TERM="dumb"), used("plan", "--ascii")):
        assert said.stdout.isascii()
        assert ".. " in said.stdout


def test_a_pipe_gets_whole_values(used: Product) -> None:
    path = used.json("status")["path"]
    assert path in used("submit", "run.toml").stderr.replace("small/2", "small/1").replace("/2-", "/1-")
    assert "…" not in used("plan", "run.toml", "--full").stdout


def test_a_reader_that_leaves_ends_it_in_silence(used: Product) -> None:
    done = subprocess.run(
        ("bash", "-c", '"$0" clusters frontier --facts | head -n 1; exit "${PIPESTATUS[0]}"', *used.argv()),
        env=used.environment, cwd=used.folder, capture_output=True, text=True, timeout=30 * PATIENCE,
    )  # fmt: skip
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode in (0, 141)
    closed = subprocess.run(
        ("bash", "-c", '"$0" plan run.toml --json > >(exec true); sleep 0.5; echo "$?"', *used.argv()),
        env=used.environment, cwd=used.folder, capture_output=True, text=True, timeout=30 * PATIENCE,
    )  # fmt: skip
    assert closed.stderr == ""


def test_next_is_a_command_that_exists(used: Product) -> None:
    """Every `next:` that a terminal shows parses, and only a terminal shows one."""
    found = {}
    for args in (("plan", "run.toml"), ("submit", "run.toml"), ("status",), ("status", "small/1"),
                 ("eject", "run.toml", "-o", "out"), ("init", "run", "-o", "new.toml")):  # fmt: skip
        shown = on_terminal(used, *args, NO_COLOR="1")
        found[args] = re.findall(r"^next:\s+(.*)$", shown, re.MULTILINE)
        assert len(found[args]) == 1, shown
    group = Commands("hpctrain")
    for (said,) in found.values():
        program, *words = shlex.split(said)
        assert program in ("hpctrain", "bash")
        if program == "hpctrain":
            name, command, rest = group.resolve_command(click.Context(group), words)
            assert command is not None
            command.make_context(name, rest)


def test_a_closed_stdin_never_blocks(used: Product) -> None:
    used.write(small("sleep 60"), "long.toml")
    used("submit", "long.toml")
    with within(8):
        for args in (("cancel", "small/2"), ("init", "run", "-o", "run.toml"), ("submit", "run.toml")):
            subprocess.run(
                ("bash", "-c", '"$0" "$@" <&-', *used.argv(*args)), env=used.environment, cwd=used.folder,
                capture_output=True, timeout=20 * PATIENCE,
            )  # fmt: skip
    assert "noodes" not in (used.folder / "run.toml").read_text()


def test_only_debug_shows_a_traceback(here: Product) -> None:
    for args in (("plan", "nothing.toml"), ("status", "x")):
        assert "Traceback" not in here(*args, code=2).stderr
        assert "Traceback" in here(*args, "--debug", code=2).stderr


def test_locked_refuses_what_is_not_pinned(here: Product) -> None:
    here.write(small("true"))
    said = here("submit", "run.toml", "--locked", code=2).stderr
    assert said.startswith("error[not-pinned]: nothing is pinned for local\n")
    here(*shlex.split(re.findall(r"help: hpctrain (.*)", said)[0]))
    here("submit", "run.toml", "--locked")


def here_step(seconds: int) -> str:
    """A run whose first step runs in front of the user."""
    command = json.dumps(
        ["bash", "-c", f'sleep {seconds} & echo $! >"$HPC_RUN/child"; wait; echo x >"$WORK"']
    )
    return small("true") + f"\n[assets]\nslow = {{ command = {command} }}\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_a_signal_ends_the_children_and_is_recorded(here: Product, number: int, code: int) -> None:
    here.write(here_step(300))
    process = here.start("submit", "run.toml")

    def written() -> list[Path]:
        runs = here.home.glob(".local/share/hpctrain/runs/small/1-*/child")
        return [path for path in runs if path.read_text().strip()]

    wait_for("the child of the step", written, 20)
    (child,) = (Path("/proc", path.read_text().strip()) for path in written())
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=20 * PATIENCE)
    assert process.returncode == code, said
    assert "interrupted; finished work is kept. To resume: hpctrain continue small/1\n" in said
    assert "Traceback" not in said
    wait_for("the child's end", lambda: not child.exists(), 5)
    steps: list[dict[str, Any]] = here.json("status", "small")["steps"]
    (ended,) = [step for step in steps if step["state"] == "failed"]
    assert (ended["state"], ended["reason"]) == ("failed", "it was interrupted")


def test_a_step_that_fails_here_shows_its_last_lines(here: Product) -> None:
    here.write(small("true") + '\n[assets]\nbad = { command = ["bash", "-c", "echo why >&2; exit 7"] }\n')
    done = here("submit", "run.toml", code=4)
    assert "error[step-failed]: step bad of small/1 ended with exit code 7" in done.stderr
    assert "note: why" in done.stderr
    assert here.state("small") == "failed"
    assert here("continue", "small", code=4).stderr.count("error[") == 1


def test_the_same_digests_everywhere(tmp_path: Path, here: Product) -> None:
    """Another user, home, time zone, folder and settings: the same plan on each of six clusters."""
    here.write(small("true"))
    other = tmp_path / "a folder of bob's"
    for name in ("home", "work"):
        (other / name).mkdir(parents=True)
    (other / "home/.config/hpctrain").mkdir(parents=True)
    (other / "home/.config/hpctrain/settings.toml").write_text(
        '[cluster.frontier]\nassets = "/somewhere/else"\n[ui]\ncolor = "always"\n[secrets]\n'
    )
    differs = {"USER": "bob", "TZ": "Asia/Kathmandu", "LANG": "nn_NO.UTF-8", "PYTHONHASHSEED": "7"}
    bob = Product(other / "home", other / "work", {**differs, "XDG_STATE_HOME": str(other)})
    bob.write(small("true"))
    mine, his = (user.json("plan", "run.toml", "--on", "all")["plans"] for user in (here, bob))
    digests = {name: plan["digest"] for name, plan in mine.items()}
    assert len(set(digests.values())) == 6
    assert digests == {name: plan["digest"] for name, plan in his.items()}


def test_clusters_that_a_narrow_terminal_cannot_show_beside_each_other_stand_below(used: Product) -> None:
    options = [word for name in ("local", "frontier", "alps") for word in ("--on", name)]
    shown = used("diff", "run.toml", *options, COLUMNS="80").stdout
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert ["longest", "job", "-", "2h", "12h"] in [line.split() for line in shown.splitlines()]
    assert "\nscheduler words\n  frontier: --partition=" in shown
    whole = used("diff", "run.toml", "--on", "all", COLUMNS="80").stdout
    assert "\nlonger: " in whole  # commands are named and not shown
    assert len(whole.splitlines()) <= 100
    assert "\nscheduler words  " in used("diff", "run.toml", *options, COLUMNS="1000").stdout


def test_every_column_of_plugins_is_there_at_80_columns(used: Product) -> None:
    shown = used("plugins", COLUMNS="80").stdout.splitlines()
    assert shown[0].split() == ["KIND", "NAME", "FROM", "HOOKS"]
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize("topic", ["account", "query_jobs", "Launch"])
def test_help_is_as_wide_as_the_terminal(used: Product, topic: str) -> None:
    narrow = used("help", topic, COLUMNS="60").stdout
    text = [line for line in narrow.splitlines() if not line.startswith("    ")]  # a command is one line
    assert max(map(len, text)) <= 60
    assert narrow.split() == used("help", topic).stdout.split()
