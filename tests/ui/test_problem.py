"""Problems look exactly as documented, whatever stands in the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.errors import Problem, Span
from hpctrain.ui.problem import brief, by_position, problem_json, problem_lines

from .help import term, text, without_color
from .test_text import NASTY, width_by_the_book

CASES = [
    (
        Problem(
            code="unknown-key",
            message='unknown key "pakages"',
            where="environment.pakages",
            hint="packages",
            span=Span(file="run.toml", line=9, column=1, end=8, text='pakages = ["trl==0.23.1"]'),
        ),
        """\
error[unknown-key]: unknown key "pakages"
  --> run.toml:9:1  environment.pakages
9 | pakages = ["trl==0.23.1"]
  | ^^^^^^^
help: packages
""",
    ),
    (
        Problem(
            code="wrong-type",
            message="time is 90, a bare number; a duration is needed",
            where="resources.time",
            hint='time = "90m"      also "1:30:00", "2d"',
            span=Span(file="run.toml", line=6, column=8, end=10, text="time = 90"),
        ),
        """\
error[wrong-type]: time is 90, a bare number; a duration is needed
  --> run.toml:6:8  resources.time
6 | time = 90
  |        ^^
help: time = "90m"      also "1:30:00", "2d"
""",
    ),
    (
        Problem(
            code="time-limit",
            message="3h is longer than frontier allows for 2 nodes",
            where="resources.time",
            hint='time = "2h"',
            notes=("batch, 1-91 nodes: 2h (OLCF Frontier User Guide, checked 2026-07-22)",),
            span=Span(file="run.toml", line=6, column=8, end=12, text='time = "3h"'),
        ),
        """\
error[time-limit]: 3h is longer than frontier allows for 2 nodes
  --> run.toml:6:8  resources.time
6 | time = "3h"
  |        ^^^^
  = note: batch, 1-91 nodes: 2h (OLCF Frontier User Guide, checked 2026-07-22)
help: time = "2h"
""",
    ),
    (
        Problem(
            code="toml",
            message="expected newline or end of document after a statement",
            span=Span(file="run.toml", line=14, column=10, text="[assets] model = {}"),
        ),
        """\
error[toml]: expected newline or end of document after a statement
  --> run.toml:14:10
14 | [assets] model = {}
   |          ^
""",
    ),
    (
        Problem(
            code="conflict",
            message="NCCL_NET is set to two values by two plugins",
            notes=(
                '"AWS Libfabric"  isambard 0.3.0     hpc_isambard/network.py',
                '"Socket"         acme-site 1.2      acme/hooks.py',
            ),
            hint='decide in run.toml:  [env] NCCL_NET = "AWS Libfabric"',
        ),
        """\
error[conflict]: NCCL_NET is set to two values by two plugins
  = note: "AWS Libfabric"  isambard 0.3.0     hpc_isambard/network.py
  = note: "Socket"         acme-site 1.2      acme/hooks.py
help: decide in run.toml:  [env] NCCL_NET = "AWS Libfabric"
""",
    ),
    (
        Problem(
            code="account",
            message="no account given; you may charge 2 on frontier: GEN150 CFD204",
            hint="hpctrain submit run.toml --account GEN150      (or `account` in settings)",
        ),
        """\
error[account]: no account given; you may charge 2 on frontier: GEN150 CFD204
help: hpctrain submit run.toml --account GEN150      (or `account` in settings)
""",
    ),
    (
        Problem(
            code="gated",
            message="meta-llama/Meta-Llama-3-8B refused the download (401, no token)",
            where="assets.model.hub",
            hint="accept the licence on the model's page, then: hf auth login",
            span=Span(file="run.toml", line=13, column=19),
        ),
        """\
error[gated]: meta-llama/Meta-Llama-3-8B refused the download (401, no token)
  --> run.toml:13:19  assets.model.hub
help: accept the licence on the model's page, then: hf auth login
""",
    ),
    (
        Problem(code="wrong-type", message="time is 90", where="--set resources.time=90", fatal=False),
        """\
warning[wrong-type]: time is 90
  --> --set resources.time=90
""",
    ),
]


@pytest.mark.parametrize(("problem", "golden"), CASES, ids=[p.code for p, _ in CASES])
def test_form(problem: Problem, golden: str) -> None:
    assert text(problem_lines([problem], term(80))) == golden
    assert text(problem_lines([problem], term(None))) == golden
    colored = text(problem_lines([problem], term(80, NO_COLOR="", FORCE_COLOR="1")))
    assert colored != golden
    assert without_color(colored) == golden


def test_ascii_and_plain_change_nothing_in_ascii_problems() -> None:
    for problem, golden in CASES:
        assert text(problem_lines([problem], term(80, HPCTRAIN_ASCII="1"))) == golden
        assert text(problem_lines([problem], term(80, ACCESSIBLE="1"))) == golden


def test_all_at_once_in_the_order_of_the_file() -> None:
    problems = [p for p, _ in CASES[:3]] + [CASES[5][0], CASES[7][0]]
    lines = problem_lines(problems, term(80), "nothing was built or submitted")
    codes = [line.partition("]")[0] for line in lines if line.startswith(("error", "warning"))]
    assert codes == [
        "error[wrong-type",
        "error[time-limit",
        "error[unknown-key",
        "error[account",
        "warning[wrong-type",
    ]
    assert lines[-2:] == ["", "4 problems, 1 warning; nothing was built or submitted"]
    assert lines.count("") == 5
    one = problem_lines(problems[:1], term(80), "nothing was built or submitted")
    assert one[-1] == "1 problem; nothing was built or submitted"
    assert problem_lines([], term(80), "nothing was built or submitted") == []


def test_files_are_kept_together() -> None:
    spans = [("b.toml", 1), ("a.toml", 9), ("a.toml", 2)]
    problems = [Problem(code="x", message="m", span=Span(file=file, line=line)) for file, line in spans]
    found = [(p.span.file, p.span.line) for p in by_position(problems) if p.span]
    assert found == [("a.toml", 2), ("a.toml", 9), ("b.toml", 1)]


def test_a_long_line_is_cut_around_the_fault() -> None:
    row = '{"messages": [' + '{"role": "user"}, ' * 200 + '{"role": "asistant", "content": "Gerne"}'
    row += ", {}" * 100_000
    at = row.index("asistant") + 1
    span = Span(file="chat.jsonl", line=1042, column=at - 1, end=at + 9, text=row)
    for width in (36, 80, None):
        lines = problem_lines([Problem(code="chat-role", message="m", span=span)], term(width))
        source, carets = lines[-2:]
        start, end = carets.index("^"), carets.rindex("^") + 1
        assert source[start:end] == '"asistant"'
        assert len(source) <= (width or 100)
        assert source.startswith("1042 | …")
        assert source.endswith("…")


def test_carets_stand_under_wide_letters() -> None:
    span = Span(file="f", line=7, column=10, end=12, text='name = "\t東京é"')
    lines = problem_lines([Problem(code="x", message="m", span=span)], term(80))
    assert lines[-2:] == ['7 | name = " 東京é"', "  |          ^^^^"]


@pytest.mark.parametrize(("column", "end"), [(1, None), (99, None), (99, 200), (3, 1), (1, 999)])
def test_a_span_outside_its_line_still_points_somewhere(column: int, end: int | None) -> None:
    span = Span(file="f", line=1, column=column, end=end, text="abc")
    lines = problem_lines([Problem(code="x", message="m", span=span)], term(80))
    assert lines[-2] == "1 | abc"
    assert lines[-1].count("^") >= 1
    assert len(lines[-1]) <= len("1 | abc^")


@settings(max_examples=150)
@given(
    NASTY, NASTY, NASTY, st.integers(1, 70), st.integers(-3, 30), st.integers(1, 10**6),
    st.integers(36, 220),
)  # fmt: skip
def test_no_line_is_wider_than_the_terminal(
    message: str, note: str, source: str, column: int, length: int, line: int, width: int
) -> None:
    span = Span(file=note or "f", line=line, column=column, end=column + length, text=source)
    problem = Problem(code="slug", message=message, where=note, notes=(note,), span=span)
    shown = problem_lines([problem], term(width), "nothing was built")
    shown += brief(problem, term(width))
    for part in shown:
        assert width_by_the_book(part) <= width
        assert "\n" not in part


def test_a_hint_is_never_broken() -> None:
    hint = "hpctrain submit run.toml --on frontier --account GEN150 --set resources.time=2h"
    problem = Problem(code="x", message="m", hint=f"{hint}\n[env]")
    assert problem_lines([problem], term(36))[-2:] == [f"help: {hint}", "      [env]"]


def test_brief() -> None:
    problem = Problem(
        code="time-long",
        message="1h30m asked, 41m predicted; less may start sooner",
        where="resources.time",
        fatal=False,
        span=Span(file="run.toml", line=12),
    )
    said = "! run.toml:12 time: 1h30m asked, 41m predicted; less may start sooner"
    assert brief(problem, term(80)) == [said]
    assert brief(problem, term(None)) == [said]
    assert brief(problem, term(44)) == [
        "! run.toml:12 time: 1h30m asked, 41m",
        "  predicted; less may start sooner",
    ]
    assert brief(Problem(code="x", message="alone"), term(80)) == ["! alone"]
    option = Problem(code="x", message="no", where="a.y", span=Span(file="--set a.y=0", line=0))
    assert brief(option, term(80)) == ["! --set a.y=0 y: no"]


def test_json_form() -> None:
    problem = CASES[2][0]
    assert json.loads(json.dumps(problem_json(problem))) == {
        "code": "time-limit",
        "message": "3h is longer than frontier allows for 2 nodes",
        "where": "resources.time",
        "hint": 'time = "2h"',
        "notes": ["batch, 1-91 nodes: 2h (OLCF Frontier User Guide, checked 2026-07-22)"],
        "fatal": True,
        "source": "",
        "span": {"file": "run.toml", "line": 6, "col": 8, "end": 12},
    }
    assert problem_json(CASES[4][0])["span"] is None
