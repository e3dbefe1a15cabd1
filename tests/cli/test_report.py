"""`report` in a real browser: drawn, hovered and zoomed on a phone and on a desk, asking for nothing."""

from __future__ import annotations

import json
import math
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, browser
from tests.e2e.product import Product, installed, small

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
FAILS = 'echo "$EVIL"; echo "RuntimeError: CUDA out of memory </pre><b>" >&2; exit 1'
START = 1_795_176_000.0


def measured(run: Path, steps: int, *, offset: float = 0.0, seed: int = 3) -> None:
    """Rows as a trainer writes them, with one spike, and an evaluation now and then."""
    chance, rows = random.Random(seed), []
    for step in range(1, steps + 1):
        time = START + step
        loss = 9 if step == steps // 2 + 1 else 2 + offset + math.exp(-step / 900) + chance.gauss(0, 0.05)
        rows.append(
            {
                "time": time, "step": step, "loss": loss,
                "lr": 3e-4 * (1 - step / (steps + 1)), "grad_norm": abs(chance.gauss(0.5, 0.1)),
                "tokens_per_s": 48_000 + chance.gauss(0, 500), "mfu": round(0.3 + chance.gauss(0, 0.004), 4),
            }
        )  # fmt: skip
        if step % 100 == 0:
            rows.append({"time": time, "step": step, "eval_loss": 2.1 + math.exp(-step / 900)})
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Somebody with a run of 5,000 steps, another of 800, and one that failed and says hostile things."""
    installed()
    here = Product(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work"))
    here.write(small("true"))
    for number, steps in ((1, 5000), (2, 800)):
        here("submit", "--wait", "--set", f"resources.time={number}m")
        measured(here.run_path(f"small/{number}"), steps, offset=number, seed=number)
    here.write(small(FAILS) + f"\n[env]\nEVIL = {json.dumps(EVIL)}\n")
    here("submit", "--wait", code=8)
    return here


def reading(tab: Browser, at: int = 0) -> str:
    return str(tab.value(f"document.querySelectorAll('.reading')[{at}].textContent"))


def plot(tab: Browser) -> tuple[float, float, float]:
    """Left, middle height and width of the first plot in the window."""
    x, y, width, height = tab.value(
        "(() => { const b = document.querySelector('.plot').getBoundingClientRect();"
        " return [b.x, b.y, b.width, b.height] })()"
    )
    return x, y + height / 2, width


def test_a_report_is_drawn_hovered_and_zoomed(user: Product, tab: Browser) -> None:
    user("report", "small/1", "-o", "one.html")
    page = user.folder / "one.html"
    tab.open(page, 1440)
    assert tab.requests == [page.as_uri()]
    assert tab.said == []
    titles = tab.value("[...document.querySelectorAll('figcaption b')].map(b => b.textContent)")
    assert titles == ["loss", "evaluation loss", "learning rate", "tokens/s", "gradient norm", "MFU"]
    assert tab.value(
        "[...document.querySelectorAll('.plot')].every(p => p.querySelector('.line').getTotalLength() > 100)"
    )
    assert reading(tab).startswith("from ")
    x, y, width = plot(tab)
    tab.mouse("mouseMoved", x + width / 2, y - 85)
    assert reading(tab) == "loss 9 at 2,501"  # the top of the spike, where it was
    assert reading(tab, 1).endswith(" at 2,500")
    tab.mouse("mousePressed", x + width * 0.8, y, held=True)
    tab.mouse("mouseMoved", x + width * 0.9, y, held=True)
    tab.mouse("mouseReleased", x + width * 0.9, y)
    labels = tab.value("[...document.querySelectorAll('.xs')].map(s => s.firstChild.textContent)")
    assert set(labels) == {"4,200"}  # all plots show the same part
    tab.mouse("mouseMoved", x + 1, y)
    assert " at 4,00" in reading(tab)
    tab.mouse("mousePressed", x + width / 2, y, held=True)
    tab.mouse("mouseReleased", x + width / 2, y)
    for clicks in (1, 2):
        tab.mouse("mousePressed", x + width / 2, y, clicks=clicks, held=True)
        tab.mouse("mouseReleased", x + width / 2, y, clicks=clicks)
    tab.mouse("mouseMoved", x + 1, y)
    assert int(reading(tab).rpartition(" at ")[2]) < 40  # a double click shows all again
    assert tab.said == []


def test_a_report_is_read_by_keyboard(user: Product, tab: Browser) -> None:
    user("report", "small/2", "-o", "one.html")
    tab.open(user.folder / "one.html", 1440)
    tab.value("document.querySelector('.plot').focus()")
    tab.key("Home")
    assert reading(tab).endswith(" at 1")
    tab.key("ArrowRight")
    assert reading(tab).endswith(" at 2")
    tab.key("End")
    assert reading(tab).endswith(" at 800")
    tab.value("[...document.querySelectorAll('.tools button')].pop().click()")
    assert (
        tab.value("[...document.querySelectorAll('.tools button')].pop().getAttribute('aria-pressed')")
        == "true"
    )
    label = tab.value("document.querySelector('.plot').getAttribute('aria-label')")
    assert label.startswith("loss: from ")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1440])
def test_a_report_fits_a_phone_and_a_desk(user: Product, tab: Browser, width: int, dark: bool) -> None:
    user("report", "small/1", "small/2", "small/3", "-o", "all.html")
    page = user.folder / "all.html"
    tab.open(page, width, dark=dark)
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value("getComputedStyle(document.querySelector('.frame text')).fontSize") == "12px"
    paper = tab.value("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    assert tab.requests == [page.as_uri()]
    assert tab.said == []


def test_hostile_words_stay_words(user: Product, tab: Browser) -> None:
    user("report", "small/3", "-o", "failed.html")
    tab.open(user.folder / "failed.html", 1440)
    assert tab.value("document.title") == "small/3: hpctrain report"
    assert tab.value("document.querySelectorAll('img, pre b').length") == 0
    shown = tab.value("document.body.textContent")
    assert EVIL in shown
    assert "CUDA out of memory </pre><b>" in shown
    assert "the GPU's memory is full" in shown
    # and what somebody writes into the file later is not run either
    page = user.folder / "failed.html"
    page.write_text(page.read_text().replace("</body>", "<script>document.title='owned'</script></body>"))
    tab.open(page, 1440)
    assert tab.value("document.title") == "small/3: hpctrain report"
    assert any("Content Security Policy" in said for said in tab.said)


def test_without_scripts_everything_is_there(user: Product, tab: Browser) -> None:
    user("report", "small/1", "small/2", "-o", "two.html")
    tab.open(user.folder / "two.html", 1440, scripts=False)
    text = (user.folder / "two.html").read_text()
    body = text.partition('<script type="application/json"')[0]
    assert body.count('<figure class="chart"') == 6
    assert body.count('class="line c1') >= 6
    for words in (
        "resources.time",
        "<td>1m</td><td>2m</td>",
        "small/1 in numbers, 50 of 5,000 rows",
        "node-hours",
    ):
        assert words in body
    tab.picture(user.folder / "two.png")
    assert (user.folder / "two.png").stat().st_size > 20_000


def test_a_hundred_thousand_steps_are_less_than_a_megabyte(here: Product) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    measured(here.run_path("small/1"), 100_000)
    told = here.json("report")
    page = here.folder / told["file"]
    assert told["file"] == "small-1.html"
    assert page.stat().st_size == told["size_bytes"] < 1_000_000
    assert "[9,9]" not in page.read_text()
    assert ",50001," in page.read_text()  # the step of the spike


def test_only_a_report_is_written_over(here: Product) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    mine = here.folder / "mine.html"
    mine.write_text("<!doctype html>\n<p>mine")
    said = here("report", "-o", "mine.html", code=2).stderr
    assert "mine.html exists, and is not a report by hpctrain" in said
    assert "-o mine-2.html" in said
    assert mine.read_text() == "<!doctype html>\n<p>mine"
    (here.folder / "link.html").symlink_to("mine.html")
    here("report", "-o", "link.html", code=2)
    here("report", "-o", "new.html")
    assert stat.S_IMODE((here.folder / "new.html").stat().st_mode) == 0o600
    first = (here.folder / "new.html").read_text()
    assert "There is no row of metrics yet." in first
    measured(here.run_path("small/1"), 10)
    here("report", "-o", "new.html")
    assert "There is no row of metrics yet." not in (here.folder / "new.html").read_text()
    assert "help: -o new.html" in here("report", "-o", "new.pdf", code=2).stderr
    assert not list(here.folder.glob(".*html*"))
