"""Whatever stands in the file: a run, or problems that can be shown; never another exception."""

from __future__ import annotations

import random
from pathlib import Path

from tests.runfile.conftest import DATA, Project

PIECES = [
    b"\x00",
    b"\xff",
    b"\n",
    b'"',
    b"'''",
    b"[",
    b"]]",
    b"{",
    b"}",
    b"=",
    b".",
    b"#",
    b",",
    b"1",
    b"-1",
    b"true",
    b"nan",
    b"1979-05-27",
    b'""',
    b"[]",
    b"{}",
    b'"$(id)"',
    b"[on.frontier]\n",
    b"[policy]\n",
    b"[[assets]]\n",
    b"x = [[[[]]]]\n",
]


def damaged(text: bytes, rng: random.Random) -> bytes:
    """Some pieces put in, some bytes taken out, some values swapped."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        end = at + rng.choice([0, 0, 1, 5, 30])
        text = text[:at] + rng.choice(PIECES) + text[end:]
    if rng.random() < 0.5:
        lines = text.split(b"\n")
        values = [number for number, line in enumerate(lines) if b"=" in line]
        for number in rng.sample(values, min(2, len(values))):
            lines[number] = lines[number].split(b"=")[0] + b"= " + rng.choice(PIECES)
        text = b"\n".join(lines)
    return text


def test_rubbish(project: Project) -> None:
    rng = random.Random(7)
    right = (DATA / "run.toml").read_bytes()
    refused = 0
    for _ in range(400):
        (project.path / "run.toml").write_bytes(damaged(right, rng))
        problems = project.attempt()
        refused += bool(problems)
        for problem in problems:
            assert problem.code
            assert problem.message
            assert problem.span is None or 1 <= problem.span.column <= len(problem.span.text) + 1
    assert 100 < refused < 400


def test_rubbish_in_settings_and_site(project: Project) -> None:
    rng = random.Random(8)
    settings = (
        b'account = "A"\n[cluster.frontier]\nassets = "/x"\n[run.checkpoint]\nkeep = 5\n[ui]\nascii = true\n'
    )
    site = (
        b'[policy]\npoll_seconds = 120\n[[queue]]\nname = "q"\nsource = "guide"\n[storage.home]\npath="x"\n'
    )
    files = (
        (project.home / ".config/hpctrain/settings.toml", settings),
        (project.home / "frontier.toml", site),
    )
    refused = 0
    for _ in range(200):
        for path, text in files:
            write(path, damaged(text, rng) if rng.random() < 0.6 else text)
        problems = project.attempt()
        refused += bool(problems)
        assert all(problem.message for problem in problems)
    assert 50 < refused < 200


def write(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def test_very_many_mistakes_are_cut(project: Project) -> None:
    project.write('name = "x"\ncluster = "frontier"\n' + "".join(f"k{n} = 1\n" for n in range(5000)))
    problems = project.problems()
    assert len(problems) == 101
    assert problems[-1].message == "4,900 more like the 100 above"
