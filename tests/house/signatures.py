"""The public names with their signatures, as lines of text that a change is seen in."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, get_args

import attrs

from hpctrain.cli.show import classes
from hpctrain.hooks import specs
from hpctrain.testing.base import Kit

PUBLIC = ("hpctrain", "hpctrain.plugin", "hpctrain.toolbox", "hpctrain.command", "hpctrain.testing")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
ANNOTATION = re.compile(r"""(: |-> )(['"])(.*?)\2(?=,| =|\)|$)""")


def signatures() -> list[str]:
    """One line for each public name, each member of the classes that pages explain, and each hook."""
    homes: dict[type, str] = {}
    lines = [line for module in PUBLIC for line in _of_module(module, homes)]
    lines += _explained(homes)
    hooks = [(name, hook) for name, hook in vars(specs).items() if hasattr(hook, "hpctrain_spec")]
    return [*lines, *(f"hook {name}{_signature(hook)}" for name, hook in hooks)]


def _explained(homes: Mapping[type, str]) -> Iterator[str]:
    """The classes that are explained on pages, have no public name, and are got from others: RunState."""
    pages = [*classes.VALUES.values(), *classes.LIBRARY.items()]
    for path, names in pages:
        module = import_module(f"hpctrain.{path}")
        for name in names.split():
            if getattr(module, name) not in homes:
                yield from (f"{name}{line}" for line in _members(getattr(module, name)))


def _of_module(module: str, homes: dict[type, str]) -> Iterator[str]:
    """The lines of one module; `homes` has the first name of each class, under which its members stand."""
    public = import_module(module)
    for name in sorted(public.__all__):
        title, value = f"{module}.{name}", getattr(public, name)
        if get_args(value):
            yield f"{title} = {' | '.join(getattr(part, '__name__', str(part)) for part in get_args(value))}"
        elif not callable(value):
            yield f"{title} = {value!r}"
        elif not _is_ours(value):
            yield f"{title} is another project's"
        elif not inspect.isclass(value):
            yield f"{title}{_signature(value)}"
        elif value in homes:
            yield f"{title} is {homes[value]}"
        else:
            homes[value] = title
            bases = [base.__name__ for base in value.__bases__ if base is not object]
            yield f"class {title}({'' if issubclass(value, Kit) else ', '.join(bases)})"
            yield from (f"{title}{line}" for line in _members(value))


def _members(cls: type) -> Iterator[str]:
    """How it is made, and what it offers; of a kit what subclasses set: its checks are no interface."""
    if issubclass(cls, Kit):
        fields = {
            name: kind
            for base in reversed(cls.__mro__)
            for name, kind in inspect.get_annotations(base).items()
        }
        yield from (f".{name}: {kind}" for name, kind in sorted(fields.items()))
        return
    if issubclass(cls, enum.Enum):
        yield from (f".{member.name} = {member.value!r}" for member in cls)
    elif not getattr(cls, "_is_protocol", False):
        for parameter in inspect.signature(cls).parameters.values():
            star = "*, " if parameter.kind is inspect.Parameter.KEYWORD_ONLY else ""
            yield f"({star}{_plain(str(parameter))})"
        if not attrs.has(cls):
            annotations = inspect.get_annotations(cls).items()
            yield from (f".{name}: {kind}" for name, kind in annotations if not name.startswith("_"))
    for name, member in sorted(_own(cls).items()):
        if isinstance(member, (property, cached_property)):
            getter: Any = member.fget if isinstance(member, property) else member.func
            yield f".{name} -> {inspect.signature(getter).return_annotation}"
        elif inspect.isroutine(member):
            yield f".{name}{_signature(getattr(cls, name))}"


def _own(cls: type) -> dict[str, Any]:
    """The public members that classes of ours bring, those of Python's left out."""
    bases = [base for base in reversed(cls.__mro__) if _is_ours(base)]
    members = {name: value for base in bases for name, value in vars(base).items()}
    return {name: value for name, value in members.items() if not name.startswith("_")}


def _is_ours(value: Any) -> bool:
    return str(value.__module__).startswith("hpctrain")


def _signature(value: Any) -> str:
    return _plain(str(inspect.signature(value)))


def _plain(text: str) -> str:
    """Annotations as the source writes them, without quotes, and nothing that changes with the process."""
    return ANNOTATION.sub(r"\1\3", ADDRESS.sub("", text))
