"""Kept sentences of sites: each stands for facts that exist; what a newer copy says otherwise is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.runfile.facts import load_facts
from release import kept
from tests.clusters import HOMES

ALPS5 = "jfrog.svc.cscs.ch/docker-group-csstaff/alps-images/ngc-pytorch:26.02-py3-alps5"
"""As CSCS' page had it on 2026-06-19, a week before the kept sentence."""


@pytest.fixture
def copies(tmp_path: Path) -> dict[str, Path]:
    """Copies in which every kept sentence stands, set in a page."""
    for sentence in kept.sentences():
        path = tmp_path / sentence.repository / sentence.page
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as page:
            page.write(f"# Heading\n\nSome words.\n{sentence.text}\n")
    return {sentence.repository: tmp_path / sentence.repository for sentence in kept.sentences()}


def words(copies: dict[str, Path]) -> list[str]:
    return [f"{name}={folder}" for name, folder in copies.items()]


def test_each_sentence_is_short_and_stands_for_facts_of_its_source() -> None:
    for sentence in kept.sentences():
        facts = load_facts(HOMES[sentence.cluster])
        assert sentence.facts, sentence
        assert set(sentence.facts) <= {fact.name for fact in facts.rows()}, sentence
        assert facts.cluster.source_of(sentence.source) is not None, sentence
        assert len(sentence.text) <= 160, "a quotation, not a page"


def test_copies_that_say_the_same_stand(copies: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert kept.main(words(copies)) == 0
    count = len(kept.sentences())
    assert capsys.readouterr().out == f"{count} of {count} sentences stand\n"


def test_layout_is_no_change_and_a_word_is(copies: dict[str, Path]) -> None:
    (row,) = [s for s in kept.sentences() if "queue.debug.max_time" in s.facts]
    page = copies[row.repository] / row.page
    page.write_text("<td>debug</td> |  1384 | **1-4**\n| `1:30:00` |\n")
    assert row.change(copies[row.repository]) == ""
    page.write_text("| debug | 1384 | 1-4 | 1:00:00 |\n")
    assert row.change(copies[row.repository]) == "now: debug 1384 1-4 1:00:00"
    page.unlink()
    assert row.change(copies[row.repository]) == f"the page is gone: {row.page}"


def test_the_image_registry_of_alps_is_found_where_it_changed(
    copies: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    page = copies["eth-cscs/cscs-docs"] / "docs/software/alps-extended-images.md"
    page.write_text(f"    | `nvcr.io/nvidia/pytorch:26.02-py3` | `{ALPS5}` |\n")
    assert kept.main(words(copies)) == 7
    shown = capsys.readouterr().out
    assert "alps, cscs-images: docs/software/alps-extended-images.md" in shown
    assert ALPS5 in shown
    assert "facts: facts.extended_images.mirror" in shown


def test_what_is_no_copy_is_refused_and_what_was_not_read_is_said(
    copies: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for bad in ([], ["nobody/nothing=/tmp"], ["eth-cscs/cscs-docs=/no/such"], ["eth-cscs/cscs-docs"]):
        assert kept.main(bad) == 2
    capsys.readouterr()
    assert kept.main([f"eth-cscs/cscs-docs={copies['eth-cscs/cscs-docs']}"]) == 0
    others = sorted(copies.keys() - {"eth-cscs/cscs-docs"})
    assert f"not read: {', '.join(others)}\n" in capsys.readouterr().out
