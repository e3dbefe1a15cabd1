"""Charts of a page hide no spike, and text of a run stays text."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpctrain.ui import markup
from hpctrain.ui.chart import Chart, thinned, trend
from hpctrain.ui.picture import Curve


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.integers(2, 20))
def test_what_stands_out_stays(ys: list[float], bins: int) -> None:
    points = list(enumerate(ys))
    kept = thinned(points, bins)
    assert len(kept) <= max(2 * bins, 2 * bins + 2)
    assert set(kept) <= set(points)
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    values = [y for _, y in kept]
    assert (min(values), max(values)) == (min(ys), max(ys))


def test_a_spike_of_one_step_is_drawn_where_it_was() -> None:
    chance = random.Random(7)
    ys = [2 + math.exp(-x / 9000) + chance.gauss(0, 0.05) for x in range(100_000)]
    ys[63_211] = 9.0
    chart = Chart("loss", [Curve("loss", range(100_000), ys)])
    curves: Any = chart.data()["curves"]
    (curve,) = curves
    at = curve["x"].index(63_211)
    assert curve["y"][at] == 9.0
    drawn = re.findall(r'class="line c0[^"]*" d="M([^"]+)"', chart.html(0))
    noisy, means = ([tuple(map(float, p.split())) for p in path.split("L")] for path in drawn)
    assert min(y for _, y in noisy) < 10  # the top of the plot
    assert min(noisy, key=lambda p: p[1])[0] == 632.1
    assert min(y for _, y in means) > 10
    assert len(json.dumps(chart.data())) + len(chart.html(0)) < 150_000


def test_few_points_are_all_there_and_need_no_trend() -> None:
    points = [(x, float(x)) for x in range(100)]
    assert thinned(points, 50) == points
    assert trend(points) == []


def test_a_value_that_was_measured_once_is_a_dot_and_not_a_line() -> None:
    once = Chart("evaluation loss", [Curve("a", [100], [0.08]), Curve("b", [50, 100], [0.2, 0.1])]).html(0)
    assert re.findall(r'<path class="(line[^"]*)"', once) == ["line c0 dot", "line c1"]


def test_odd_series_are_drawn() -> None:
    for ys in ([], [1.0], [2.0, 2.0], [math.nan, 1.0], [math.inf, math.nan]):
        html = Chart("loss", [Curve("a", range(len(ys)), ys)]).html(0)
        assert "nan" not in html.replace("not finite", "")
        assert "inf" not in html.replace("not finite", "")


def test_a_page_allows_its_own_script_and_nothing_else() -> None:
    evil = "</script><script>alert(1)</script>\u202e\x1b[31m"
    text = markup.page(evil, [markup.table([evil], [[evil]])], style="p{}", script="1", data=[evil])
    assert text.count("<script") == 2
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    data = re.search(r'id="data">(.*?)</script>', text)
    assert data is not None
    assert json.loads(data[1]) == [evil]
