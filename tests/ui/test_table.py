"""Tables at every width, and facts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.ui.table import Column, Table, facts

from .help import term, text, without_color
from .test_text import NASTY, width_by_the_book


def steps() -> Table:
    table = Table(
        Column("#"),
        Column("STEP"),
        Column("PLACE", drop=1),
        Column("MAKES", style="name"),
        Column("NOW"),
        Column("ABOUT", right=True),
        Column("SIZE", right=True),
    )
    table.row("1", "wheels", "login", "wheels-71c09be2f4aa", "build", "4m", "6.1 GB")
    table.row("2", "env", "login", "conda-0b52e7d9c613", "build", "6m", "9.8 GB")
    table.row("4", "dataset", "login", "hub-5d1e7733ab90", ("ok", "exists"), None, "21 MB")
    table.row("6", "train", "batch 2 nodes", "checkpoints", "job", "1h30m", "0.4 GB")
    return table


AT_80 = """\
#  STEP     PLACE          MAKES                NOW     ABOUT    SIZE
1  wheels   login          wheels-71c09be2f4aa  build      4m  6.1 GB
2  env      login          conda-0b52e7d9c613   build      6m  9.8 GB
4  dataset  login          hub-5d1e7733ab90     exists      -   21 MB
6  train    batch 2 nodes  checkpoints          job     1h30m  0.4 GB
"""
AT_44 = """\
#  STEP     MAKES      NOW     ABOUT    SIZE
1  wheels   whee…f4aa  build      4m  6.1 GB
2  env      cond…c613  build      6m  9.8 GB
4  dataset  hub-…ab90  exists      -   21 MB
6  train    chec…ints  job     1h30m  0.4 GB
"""
AT_36 = """\
#      1
STEP   wheels
PLACE  login
MAKES  wheels-71c09be2f4aa
NOW    build
ABOUT  4m
SIZE   6.1 GB

#      2
"""
PLAIN = """\
#: 1
step: wheels
place: login
makes: wheels-71c09be2f4aa
now: build
about: 4m
size: 6.1 GB

#: 2
"""


@pytest.mark.parametrize(("width", "golden"), [(80, AT_80), (44, AT_44), (None, AT_80)])
def test_the_plan_table(width: int | None, golden: str) -> None:
    assert text(steps().lines(term(width))) == golden


def test_too_narrow_for_columns_gives_records() -> None:
    assert text(steps().lines(term(36))).startswith(AT_36)


def test_plain_mode_gives_records_with_colons() -> None:
    assert text(steps().lines(term(80, ACCESSIBLE="1"))).startswith(PLAIN)


def test_ascii_has_its_own_mark() -> None:
    lines = steps().lines(term(44, HPCTRAIN_ASCII="1"))
    assert lines[1] == "1  wheels   whee..4aa  build      4m  6.1 GB"
    assert text(lines).isascii()


@pytest.mark.parametrize("width", [36, 44, 60, 80, None])
@pytest.mark.parametrize("plain", ["", "1"])
def test_color_adds_codes_and_nothing_else(width: int | None, plain: str) -> None:
    colored = text(steps().lines(term(width, NO_COLOR="", FORCE_COLOR="1", ACCESSIBLE=plain)))
    assert "\x1b[32mexists\x1b[0m" in colored
    assert without_color(colored) == text(steps().lines(term(width, ACCESSIBLE=plain)))


ROWS = st.lists(st.tuples(NASTY, NASTY, st.integers(0, 10**15).map(str), NASTY), max_size=5)


def table_of(rows: list[tuple[str, str, str, str]]) -> Table:
    table = Table(Column("NAME"), Column("VALUE", drop=2), Column("N", right=True), Column("NOTE", drop=1))
    for row in rows:
        table.row(*row)
    return table


@settings(max_examples=150)
@given(ROWS, st.integers(36, 220), st.booleans())
def test_no_line_is_wider_than_the_terminal(
    rows: list[tuple[str, str, str, str]], width: int, ascii_only: bool
) -> None:
    for line in table_of(rows).lines(term(width, HPCTRAIN_ASCII="1" if ascii_only else "")):
        assert width_by_the_book(line) <= width
        assert "\n" not in line


@given(ROWS)
def test_a_pipe_never_clips(rows: list[tuple[str, str, str, str]]) -> None:
    pipe = term(None)
    lines = table_of(rows).lines(pipe)
    assert len(lines) == len(rows) + 1
    for row, line in zip(rows, lines[1:], strict=True):
        for cell in row:
            assert pipe.text(cell).strip() in line


def test_in_a_pipe_a_very_long_cell_moves_its_own_row_only() -> None:
    table = Table(Column("KEY"), Column("HERE"), Column("THERE"))
    table.row("command", "x" * 300, "y")
    table.row("nodes", "2", "4")
    _, long, short = table.lines(term(None))
    assert long == f"command  {'x' * 300}  y"
    assert len(short) < 100


def test_columns_leave_by_their_order_and_numbers_are_never_clipped() -> None:
    table = Table(Column("RUN"), Column("A", drop=1), Column("B", drop=2), Column("TOKENS", right=True))
    table.row("r" * 30, "a" * 10, "b" * 10, "1,234,567,890")
    assert table.lines(term(80))[0].split() == ["RUN", "A", "B", "TOKENS"]
    assert table.lines(term(60))[0].split() == ["RUN", "A", "TOKENS"]
    assert table.lines(term(50))[0].split() == ["RUN", "TOKENS"]
    assert table.lines(term(36))[1] == "rrrrrrrrrr…rrrrrrrrrr  1,234,567,890"


def test_a_row_with_the_wrong_number_of_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells are needed, got 1"):
        Table(Column("A"), Column("B")).row("1")


CAUSE = (
    ("cause", ("error", "sure: the preloaded NCCL is older than torch 2.10 needs")),
    ("because", "run.toml:44 [env] LD_PRELOAD replaces the venv's NCCL 2.27.5"),
    ("lost", None),
)


def test_facts_stand_under_each_other_and_go_on_below_themselves() -> None:
    assert text(facts(CAUSE, term(44))) == (
        "cause    sure: the preloaded NCCL is older\n"
        "         than torch 2.10 needs\n"
        "because  run.toml:44 [env] LD_PRELOAD\n"
        "         replaces the venv's NCCL 2.27.5\n"
        "lost     -\n"
    )
    assert [len(line) for line in facts(CAUSE, term(None))] == [64, 69, 10]
    assert facts(CAUSE, term(44, ACCESSIBLE="1"))[2] == "lost: -"


def test_coloured_facts_are_the_plain_ones_with_codes() -> None:
    colored = text(facts(CAUSE, term(44, NO_COLOR="", FORCE_COLOR="1")))
    assert without_color(colored) == text(facts(CAUSE, term(44)))
    assert colored != without_color(colored)


def test_no_facts_no_lines() -> None:
    assert facts((), term(80)) == []
