"""Plots keep every spike, in braille, in ASCII and in a sentence."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpctrain.ui.plot import plot
from hpctrain.ui.series import axis_words, extent, round_marks, sentence

from .help import term, text, without_color
from .test_text import width_by_the_book

STEPS = list(range(1, 301))
LOSS = [3.83 * math.exp(-(step - 1) / 60) + 0.08 for step in STEPS]

BRAILLE = """\
loss
3.91 ┤⠱⣄
     ┤ ⠈⠓⢤⡀
     ┤    ⠉⠓⠦⣄⣀
0.11 ┤        ⠈⠉⠙⠒⠒⠢⠤⠤⠤⠤⠤⣄⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
     └ step 1                    300
"""
ASCII = """\
loss
3.91 |**
     | ****
     |    *******
0.11 |          ********************
     + step 1                    300
"""


def test_golden_forms() -> None:
    assert text(plot("loss", STEPS, LOSS, term(80), width=36)) == BRAILLE
    assert text(plot("loss", STEPS, LOSS, term(80, HPCTRAIN_ASCII="1"), width=36)) == ASCII
    plain = plot("loss", STEPS, LOSS, term(80, ACCESSIBLE="1"))
    assert plain == ["loss: from 3.91 to 0.11, lowest 0.11 at step 300"]
    colored = plot("loss", STEPS, LOSS, term(80, NO_COLOR="", FORCE_COLOR="1"), width=36)
    assert colored[0] == "\x1b[1mloss\x1b[0m"
    assert without_color(text(colored)) == BRAILLE


def test_room_for_what_is_to_come() -> None:
    *_, last, foot = plot("loss", STEPS[:155], LOSS[:155], term(80), x_end=240)
    assert foot.endswith(" 240")
    assert len(foot) == 80
    assert abs(foot.index("155") + 1 - len(last)) <= 3


@pytest.mark.parametrize("ascii_only", ["", "1"])
def test_one_spike_among_a_hundred_thousand_points_is_seen(ascii_only: str) -> None:
    noise = random.Random(7)
    values = [1 + noise.random() * 0.01 for _ in range(100_000)]
    values[61_803] = 5.0
    rows = plot("grad norm", range(100_000), values, term(80, HPCTRAIN_ASCII=ascii_only))
    assert rows[1].startswith("5.00")
    body = rows[1].partition("|" if ascii_only else "┤")[2]
    assert len(body.split()) == 1
    assert len(body) == pytest.approx(0.618 * 74, abs=2)


def test_a_line_breaks_where_values_are_not_finite() -> None:
    ys = [1.0] * 50 + [math.nan] * 100 + [2.0] * 50
    rows = plot("x", range(200), ys, term(80, HPCTRAIN_ASCII="1"), height=2)
    assert "*" * 18 + " " * 36 not in rows[1]
    assert rows[2].rstrip().count("*") in range(17, 21)
    assert rows[1].count("*") in range(17, 21)
    assert sentence("x", range(200), ys).endswith("lowest 1.00 at step 0, 100 not finite")


@pytest.mark.parametrize(
    ("ys", "said"),
    [
        ([], "loss: no values yet"),
        ([math.nan], "loss: no values yet"),
        ([2.5], "loss: 2.500 at step 1"),
        ([2.41, 1.2, 1.21], "loss: from 2.41 to 1.21, lowest 1.20 at step 2"),
        ([1980.0, 1850.0], "loss: from 1,980 to 1,850, lowest 1,850 at step 2"),
        ([2e-4, 1e-4], "loss: from 2e-4 to 1e-4, lowest 1e-4 at step 2"),
        ([3.0, 3.0], "loss: from 3.00 to 3.00, lowest 3.00 at step 1"),
    ],
)
def test_sentence(ys: list[float], said: str) -> None:
    assert sentence("loss", range(1, len(ys) + 1), ys) == said


def test_nothing_to_draw_is_said() -> None:
    assert plot("loss", [], [], term(80)) == ["loss: no values yet"]


def test_a_narrow_plot_drops_words_before_numbers() -> None:
    ys = [999_999_999.0001, 999_999_999.0002]
    rows = plot("tokens", [1, 10_000_000], ys, term(36))
    assert max(map(len, rows)) <= 36
    assert rows[-1].split() == ["└", "1", "10,000,000"]


def test_steps_that_go_back_after_a_restart_are_drawn() -> None:
    xs, ys = [1, 2, 3, 4, 2, 3, 4, 5], [5.0, 4, 3, 9, 4, 3, 2, 1]
    assert plot("loss", xs, ys, term(80))[1].startswith("9.00")


VALUES = st.floats(-1e30, 1e30) | st.floats(1e-12, 1.0) | st.sampled_from([math.nan, math.inf, 0.0])


@given(
    st.lists(VALUES, max_size=40), st.integers(36, 220), st.integers(1, 8), st.booleans(),
    st.sampled_from([None, 10, 10**7]),
)  # fmt: skip
def test_every_series_fits(
    ys: list[float], width: int, height: int, ascii_only: bool, x_end: int | None
) -> None:
    here = term(width, HPCTRAIN_ASCII="1" if ascii_only else "")
    rows = plot("a name", range(len(ys)), ys, here, width=width, height=height, x_end=x_end)
    if len(rows) > 1:
        assert len(rows) == height + 2
        assert all(width_by_the_book(row) <= width for row in rows)


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12), st.booleans())
def test_axis_marks_lie_inside_and_are_few(low: float, span: float, whole: bool) -> None:
    assume(span > abs(low) * 1e-6)
    marks = round_marks(low, low + span, 5, whole)
    assert len(marks) <= 7
    assert all(low - span * 1e-3 <= mark <= low + span * 1.001 for mark in marks)
    if whole:
        assert all(mark == int(mark) for mark in marks)


def test_axis_marks_are_round() -> None:
    assert round_marks(0.06, 3.95, 5) == [1, 2, 3]
    assert round_marks(0.0, 0.4, 4) == [0, 0.1, 0.2, 0.3, 0.4]
    assert round_marks(1, 300, 6) == [50, 100, 150, 200, 250, 300]
    assert round_marks(0, 3, 6, whole=True) == [0, 1, 2, 3]


def test_axis_words_tell_values_apart() -> None:
    assert axis_words((2.41, 1.21), 1.2) == ["2.41", "1.21"]
    assert axis_words((1980, 1850), 130) == ["1,980", "1,850"]
    assert axis_words((1.0001, 1.0002), 0.0001) == ["1.000100", "1.000200"]
    assert extent([2.0, 2.0]) == (1.9, 2.1)
    assert extent([0.0]) == (-1.0, 1.0)
    assert extent([5.0], 1.0) == (4.0, 6.0)
