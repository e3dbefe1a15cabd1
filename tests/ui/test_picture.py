"""A picture is XML that stands alone and holds exactly what was measured."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpctrain.ui.picture import BINS, EXACT, Curve, picture

SVG = "{http://www.w3.org/2000/svg}"


def read(svg: str) -> tuple[ET.Element, list[dict[str, Any]]]:
    root = ET.fromstring(svg)
    metadata = root.find(f"{SVG}metadata")
    assert metadata is not None
    assert metadata.text
    return root, json.loads(metadata.text)["curves"]


def noisy(count: int) -> list[float]:
    chance = random.Random(3)
    return [2 + math.exp(-x / 1000) + chance.gauss(0, 0.1) for x in range(count)]


@given(st.lists(st.floats(-1e30, 1e30), max_size=50))
def test_the_points_are_exact(ys: list[float]) -> None:
    xs = list(range(1, len(ys) + 1))
    _, (curve,) = read(picture("loss", [Curve("loss", xs, ys)]))
    assert curve["points"] == [[x, y] for x, y in zip(xs, ys, strict=True)]
    assert curve["bins"] == []


def test_points_survive_the_way_through_a_metrics_file() -> None:
    rows = [json.dumps({"step": step, "loss": y}) for step, y in enumerate(noisy(300), start=1)]
    data = [json.loads(row) for row in rows]
    steps, loss = [row["step"] for row in data], [row["loss"] for row in data]
    root, (curve,) = read(picture("loss", [Curve("loss", steps, loss)]))
    assert curve["points"] == [[row["step"], row["loss"]] for row in data]
    drawn = root.find(f"{SVG}path[@class='line s0']")
    assert drawn is not None
    assert len(drawn.attrib["d"][1:].split("L")) == 300


def test_the_line_goes_where_the_values_are() -> None:
    root, _ = read(picture("loss", [Curve("loss", [0, 10, 20], [0.0, 4.0, 2.0])]))
    line = root.find(f"{SVG}path[@class='line s0']")
    assert line is not None
    places = [tuple(map(float, p.split())) for p in line.attrib["d"][1:].split("L")]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.05)
    assert y0 > y2 > y1


def test_a_long_series_keeps_its_spikes_and_its_last_points() -> None:
    ys = noisy(200_000)
    ys[90_000] = 9.0
    svg = picture("loss", [Curve("loss", range(200_000), ys)])
    root, (curve,) = read(svg)
    assert len(curve["bins"]) <= BINS
    assert max(high for _, _, high, _ in curve["bins"]) == 9.0
    assert min(low for _, low, _, _ in curve["bins"]) == min(ys[:-EXACT])
    assert curve["points"] == [[x, ys[x]] for x in range(200_000 - EXACT, 200_000)]
    assert root.find(f"{SVG}path[@class='band s0 f0']") is not None
    assert len(svg) < 200_000


@pytest.mark.parametrize(("count", "bins"), [(BINS + EXACT, 0), (BINS + EXACT + 1, BINS // 2 + 1)])
def test_bins_begin_where_points_would_be_too_many(count: int, bins: int) -> None:
    _, (curve,) = read(picture("loss", [Curve("loss", range(count), noisy(count))]))
    assert len(curve["bins"]) == bins


def test_it_stands_alone_and_speaks() -> None:
    svg = picture(
        "guanaco-lora/1",
        [Curve("train", [1, 2, 3], [2.41, 1.2, 1.21]), Curve("held out", [2], [1.5])],
        unit="nats",
        ident="loss",
    )
    root, curves = read(svg)
    assert [curve["name"] for curve in curves] == ["train", "held out"]
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "loss-title loss-desc"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == "guanaco-lora/1"
    assert desc is not None
    assert desc.text == ("train: from 2.41 to 1.21, lowest 1.20 at step 2; held out: 1.500 at step 2")
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"url\(|@import|href|<script|https?://(?!www\.w3\.org/2000/svg)", svg)
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {"nats", "step", "1", "2", "3", "1.210", "held out", "1.500"} <= set(words)
    assert "1.50" not in words  # marks carry no common noughts


def test_labels_stay_apart_and_above_the_axis() -> None:
    curves = [Curve(f"run {n}", [1, 2], [1.0, 0.01 * n]) for n in range(4)]
    root, _ = read(picture("loss", curves))
    levels = sorted(
        float(element.attrib["y"])
        for element in root.iter(f"{SVG}text")
        if element.attrib.get("class", "").startswith("end")
    )
    assert len(levels) == 4
    assert all(below - above >= 30 for above, below in itertools.pairwise(levels))
    assert levels[-1] < 330 - 14


@given(st.text(max_size=30), st.text(max_size=30))
def test_hostile_names_stay_text(title: str, name: str) -> None:
    root, curves = read(picture(title, [Curve(f"</metadata><script>{name}", [1], [1.0])], unit=name))
    assert root.find(f".//{SVG}script") is None
    assert curves[0]["name"].startswith("</metadata><script>")


def test_nothing_measured_is_still_a_picture() -> None:
    for ys in ([], [math.nan], [math.inf]):
        _, (curve,) = read(picture("loss", [Curve("loss", range(len(ys)), ys)]))
        assert curve["points"] == []


def test_too_many_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="one to four curves, got 5"):
        picture("x", [Curve("y", [], [])] * 5)
