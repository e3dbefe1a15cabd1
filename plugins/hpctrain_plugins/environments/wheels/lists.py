"""The requirement lists of an environment, in the order in which they build on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.model.layer import File
from hpctrain.model.step import Pin
from hpctrain.model.words import Join, Loc, Word
from hpctrain_plugins.environments.wheels.wants import Wants, name_of, normal, step_file

UNVERIFIED = "unverified"
"""In a pin's value: its index was out of reach when it was locked, so its hash is not known."""
Lists = Mapping[str, tuple[str, ...]]


def of(wants: Wants, pins: Iterable[Pin]) -> Lists:
    """The requirement lists: what was pinned, or what was asked for where nothing is.

    `vendor` are those of `first` whose hash nobody knows: pip takes hashes for all lines of a file
    or for none.
    """
    first = set(wants.first)
    compiled = {s.name for s in wants.compile}
    pinned = {p.name: p for p in pins if p.kind == "pypi"}
    if not pinned:
        rest = tuple(r for r in wants.wheels if normal(name_of(r)) not in first)
        return {"first": wants.options.first, "packages": rest}
    vendor = {name for name, pin in pinned.items() if UNVERIFIED in pin.value.split()}
    return {
        "vendor": tuple(line(pinned[name]) for name in sorted(vendor)),
        "first": tuple(line(pinned[name]) for name in sorted((first - vendor) & set(pinned))),
        "packages": tuple(line(p) for n, p in pinned.items() if n not in first | compiled | vendor),
    }


def line(pin: Pin) -> str:
    """A requirement with the hashes of its pin."""
    version, *marks = pin.value.split()
    return " ".join((f"{pin.name}=={version}", *(f"--hash={m}" for m in marks if m != UNVERIFIED)))


def alone(pins: Iterable[Pin], name: str) -> str:
    """The line of one package."""
    return next((line(p) for p in pins if p.kind == "pypi" and p.name == name), name)


def files(lists: Lists) -> tuple[File, ...]:
    """The lists as files of the step."""
    return tuple(
        File(path=f"{name}.txt", body=("\n".join(lines) + "\n",)) for name, lines in lists.items() if lines
    )


def install(wants: Wants, lists: Lists, house: Loc | None) -> list[tuple[Word, ...]]:
    """The words behind `pip install` for each list."""
    pinned = "vendor" in lists
    found: list[tuple[Word, ...]] = []
    for name, lines in lists.items():
        if lines:
            # What is no more than a version brings what it needs by itself.
            alone = ("--no-deps",) if pinned and name != "vendor" else ()
            found.append((*alone, *_where(wants, name, house), "-r", step_file(f"{name}.txt")))
    return found


def _where(wants: Wants, name: str, house: Loc | None) -> tuple[Word, ...]:
    if name in ("first", "vendor") and wants.options.first_index and house is None:
        return ("--index-url", wants.options.first_index)
    return where(wants, house)


def where(wants: Wants, house: Loc | None) -> tuple[Word, ...]:
    """Where pip looks: the wheel house alone, else its own configuration and what was said."""
    if house is not None:
        return ("--no-index", "--find-links", house)
    index = ("--index-url", wants.options.index_url) if wants.options.index_url else ()
    links = (Join("--find-links=", link) for link in wants.options.find_links)
    return (*index, *links)
