"""Rows of JSON that a trainer learns from, judged by line before anything is queued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import attrs

from hpctrain.plugin import Problem, Tell
from hpctrain_plugins.data.problems import problems as of_faults
from hpctrain_tokens.chat.trained import SUFFIXES, Judgement, Reader, judge
from hpctrain_tokens.chat_template import Template
from hpctrain_tokens.commands.answer import plural, size
from hpctrain_tokens.faults import SHOWN_FAULTS, DataError, RowError
from hpctrain_tokens.tokenizer import Tokenizer


def problems(path: Path, reader: Reader, tell: Tell) -> Iterator[Problem]:
    """What ends the training is fatal; with what it goes on is told, once for each kind."""
    if path.suffix not in SUFFIXES or not path.is_file():
        return
    untried = _untried(reader.template)
    yield from untried
    try:
        judgement = judge(path, replace(reader, template=None) if untried else reader, tell=tell)
    except DataError as error:
        yield from of_faults(error.faults, error.omitted)
        return
    except OSError as error:
        yield Problem(code="unreadable", message=f"{path} cannot be read: {error.strerror}")
        return
    refused = of_faults(judgement.refused)
    if len(refused) >= SHOWN_FAULTS:
        refused[-1] = attrs.evolve(
            refused[-1], notes=(*refused[-1].notes, "rows after this one were not judged")
        )
    yield from refused
    for fault, problem in zip(judgement.taken, of_faults(judgement.taken), strict=True):
        repeats = judgement.counts[fault.code] - 1
        notes = (f"and {plural(repeats, 'row')} more of this kind",) if repeats else ()
        yield attrs.evolve(problem, fatal=False, notes=(*problem.notes, *notes))
    if not judgement.refused:
        yield from _unread(judgement)


def template_of(folder: Path | None, text: str = "") -> tuple[Template | None, tuple[Problem, ...]]:
    """The template that will write the rows, where the model is here; `text` takes the place of its own."""
    if folder is None or not folder.is_dir():
        return None, ()
    try:
        tokenizer = Tokenizer.at(str(folder))
        template = Template.of(tokenizer) if not text else Template.written(tokenizer, text)
    except DataError as error:
        lacks_one = error.faults[0].code == "no-template"
        return None, tuple(of_faults(error.faults)) if lacks_one else ()
    return template, ()


def _untried(template: Template | None) -> tuple[Problem, ...]:
    """Why a template cannot be tried on this machine, which says nothing of the data."""
    try:
        if template is not None:
            template.render(())
    except DataError as error:
        return tuple(attrs.evolve(problem, fatal=False) for problem in of_faults(error.faults))
    except RowError:  # it wants a message
        pass
    return ()


def _unread(judgement: Judgement) -> Iterator[Problem]:
    if judgement.read < judgement.size:
        yield Problem(
            code="data-sampled",
            message=f"{judgement.file} has {size(judgement.size)}, of which {size(judgement.read)} were read,"
            f" {plural(judgement.rows, 'row')}: half from its beginning, half from places up to its end",
            hint=f"hpctrain data check {judgement.file}      (reads every row)",
            fatal=False,
        )
