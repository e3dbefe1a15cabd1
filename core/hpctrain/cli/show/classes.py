"""The classes that plugins and programs use, as sections of help and pages: fields, members, methods.

All is read from the classes themselves, whose fields and methods have docstrings.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import attrs

from hpctrain import errors, plugin
from hpctrain.cli.show.sections import Row, Section
from hpctrain.cli.table import COMMANDS
from hpctrain.model.docstrings import docstrings
from hpctrain.model.fields import Form, Kind, fields_of

VALUES = {
    "Words": ("model.words", "Var Loc Join Secret Raw Cmd"),
    "Around a command": ("model.layer", "Layer EnvVar How Scope Module Bind File Quote"),
    "Steps": ("model.step", "Step Need Artifact Pin After When Launch Ranks"),
    "Training": ("model.train", "Train Layout Pattern Numbers"),
    "The run": ("model.run", "RunSpec Asset Code Package Stack"),
    "Lengths of time": ("model.duration", "Duration"),
    "The cluster": ("model.cluster", "Cluster"),
    "The plan": ("model.plan", "Plan PlannedStep Binding Survey Refusal CodeState EarlierRun"),
    "Jobs": ("model.job", "JobFiles Job JobState State Allocation Event Rule"),
    "Scripts": ("render.shape", "Shape Handover"),
    "Programs": ("model.tools", "ProgramRunner ProgramResult"),
    "Problems": ("errors", "Problem Span"),
}
"""Heading -> the module below `hpctrain` and its classes, in the order of the page."""

LIBRARY = {
    "session": "Session",
    "run.live": "LiveRun",
    "run.steps.status": "RunState StepState",
    "model.job": "ChainState",
    "run.output.metrics": "Metrics",
    "run.disk.directory": "RunDirectory",
}
"""Module -> the classes of the page on the library, in its order."""

OTHER_TOPICS = {"programrunner": ("tools",)}
"""What a class is asked for by, besides its name: hooks call their argument so."""


def values() -> dict[str, list[Section]]:
    """The classes that plugins use, by heading."""
    sections = {heading: _sections(path, names) for heading, (path, names) in VALUES.items()}
    sections["Problems"].append(error_classes())
    sections["Functions"] = [functions()]
    return sections


def library() -> list[Section]:
    """The classes of a Python program that starts runs and reads them; it makes only a Session."""
    sections = [section for path, names in LIBRARY.items() for section in _sections(path, names)]
    return [attrs.evolve(s, rows=tuple(attrs.evolve(r, needed=False) for r in s.rows)) for s in sections]


def error_classes() -> Section:
    """What may be raised, with the exit code that the command line ends with."""
    classes = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.HpctrainError)]
    rows = [Row(name=cls.__name__, kind=f"exit code {cls.exit_code}", meaning=_doc(cls)) for cls in classes]
    text = (
        'Raise one with `NotReachable.of("timeout", "what is wrong", hint="what to type")`; its `problems` '
        "are what the command line shows."
    )
    return Section(title="Errors", text=text, rows=tuple(rows), topics=("errors",))


def functions() -> Section:
    """The functions among the names of `hpctrain.plugin`."""
    routines = [value for name in plugin.__all__ if inspect.isroutine(value := getattr(plugin, name))]
    rows = [Row(name=f"{f.__name__}{arguments(f)}", kind=_returned(f), meaning=_doc(f)) for f in routines]
    return Section(
        title="Functions", text="They come from `hpctrain.plugin` too.", rows=tuple(rows), topics=()
    )


def class_section(cls: type) -> Section:
    """The section of one class."""
    topic = cls.__name__.lower()
    topics = (
        () if topic in COMMANDS else (topic, *OTHER_TOPICS.get(topic, ()))
    )  # `help plan` is the command's
    rows = (*_fields(cls), *_methods(cls))
    return Section(title=cls.__name__, text=docstrings(cls)[""], rows=rows, topics=topics)


def _sections(path: str, names: str) -> list[Section]:
    module = import_module(f"hpctrain.{path}")
    return [class_section(getattr(module, name)) for name in names.split()]


def _fields(cls: type) -> Iterator[Row]:
    """The members of an enum, the fields of a class of attrs, or what another class declares."""
    meanings = docstrings(cls)
    if issubclass(cls, enum.Enum):
        yield from (Row(name=member.name, meaning=meanings.get(member.name, "")) for member in cls)
    elif attrs.has(cls):
        for field in fields_of(cls).values():
            yield Row(
                name=field.name,
                kind=field.annotation,
                default="" if field.default is None else str(field.default),
                needed=field.required,
                meaning=field.doc or _summary(field.kind),
            )
    else:
        for name, annotation in inspect.get_annotations(cls).items():
            if not name.startswith("_"):
                yield Row(name=name, kind=str(annotation), meaning=meanings.get(name, ""))


def _methods(cls: type) -> Iterator[Row]:
    """The public properties and methods that the class defines itself."""
    for name, member in vars(cls).items():
        if name.startswith("_") or name in getattr(cls, "__members__", ()):
            continue
        if isinstance(member, property):
            kind = "" if issubclass(cls, enum.Enum) else _returned(member.fget)
            yield Row(name=name, kind=kind, meaning=_doc(member.fget))
        elif isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
            function = getattr(member, "__func__", member)
            title = f"{name}{arguments(function, skipped=0 if isinstance(member, staticmethod) else 1)}"
            yield Row(name=title, kind=_returned(function), meaning=_doc(function))


def arguments(function: Any, skipped: int = 0) -> str:
    """`(argv, *, timeout=60.0)`: what is passed, without types and without the first `skipped` ones."""
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(bare))


def _returned(function: Any) -> str:
    return str(inspect.signature(function).return_annotation)


def _doc(function: Any) -> str:
    return " ".join((inspect.getdoc(function) or "").split())


def _summary(kind: Kind) -> str:
    """What the class of a field says of itself, in a sentence."""
    classes = (part.type for part in (kind, *kind.parts) if part.form is Form.TABLE)
    first = next((docstrings(cls)[""] for cls in classes), "").partition(". ")[0]
    return f"{first.rstrip('.')}." if first else ""
