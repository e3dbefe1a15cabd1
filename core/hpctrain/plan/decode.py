"""Values of the model from the JSON that `hpctrain.plan.encode` wrote. cattrs reads it.

These are files of ours, which nobody writes by hand: no line has to be shown and no slip explained, and
no plan reads one. What people write is read by `hpctrain.runfile.judging.strict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hpctrain.model.step import After, When
from hpctrain.model.words import Cmd, Join, Loc, Raw, Secret, Var, Word

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")
MOST_EXPLAINED = 20_000
"""Characters of a document whose every mistake is told."""
_NAMED: Mapping[str, Callable[[str], Word]] = {"var": Var, "raw": Raw, "secret": Secret}


def decode(data: Any, cls: type[T]) -> T:
    """`data` as one of `cls`, without keys that a newer writer added; ValueError has each mistake's place."""
    try:
        return _converter().structure(data, cls)
    except Exception as error:
        raise ValueError(_explained(data, cls) or f"{type(error).__name__}: {error}") from error


def _explained(data: Any, cls: type) -> str:
    """Each mistake with its place; "" for a large document, where each value may be one and costs 4 KB."""
    from cattrs import transform_error

    try:
        if len(repr(data)) <= MOST_EXPLAINED:
            _converter(detailed=True).structure(data, cls)
    except RecursionError:
        return ""
    except Exception as error:
        return "; ".join(transform_error(error))
    return ""


@cache
def _converter(*, detailed: bool = False) -> Converter:
    from cattrs import Converter  # here: its import costs what Python's own start does

    converter = Converter(detailed_validation=detailed)
    for plain in (str, int, bool):
        converter.register_structure_hook(plain, _exact)
    converter.register_structure_hook_func(lambda annotation: annotation == Word, lambda data, _: word(data))
    converter.register_structure_hook(Loc, lambda data, _: Loc(*data["loc"]))
    converter.register_structure_hook(Cmd, lambda data, _: Cmd(tuple(map(word, data))))
    converter.register_structure_hook(After, lambda data, _: After(data[0], When(data[1])))
    return converter


def _exact(data: Any, cls: Any) -> Any:
    """cattrs itself would make True of "no"."""
    if type(data) is not cls:
        raise ValueError(f"{data!r} is no {cls.__name__}")
    return data


def word(data: Any) -> Word:
    """A word from its JSON form."""
    if isinstance(data, str):
        return data
    ((form, content),) = data.items()
    if form == "join":
        return Join(*map(word, content))
    if form == "loc":
        return Loc(*content)
    if form not in _NAMED:
        raise ValueError(f"no word is called {form!r}")
    return _NAMED[form](content)
