"""The requirement lists of an environment, in the order in which they build on each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.plugin import File, Join, Loc, Pin, Word
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, name_of, normal, step_file

UNVERIFIED = "unverified"
"""In a pin's value: its index was out of reach when it was locked, so its hash is not known."""
Lists = Mapping[str, tuple[str, ...]]


def of(spec: PackagesSpec, pins: Iterable[Pin]) -> Lists:
    """The requirement lists: what was pinned, or what was asked for where nothing is.

    `vendor` are those of `first` whose hash nobody knows: pip takes hashes for all lines of a file
    or for none.
    """
    first = set(spec.first)
    compiled = {s.name for s in spec.compile}
    pinned = {p.name: p for p in pins if p.kind == "pypi"}
    if not pinned:
        remaining = tuple(r for r in spec.wheels if normal(name_of(r)) not in first)
        return {"first": spec.options.first, "packages": remaining}
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


def pinned_line(pins: Iterable[Pin], name: str) -> str:
    """The line of a package in a requirements file: pinned, or its bare name where there is no pin."""
    return next((line(p) for p in pins if p.kind == "pypi" and p.name == name), name)


def files(lists: Lists) -> tuple[File, ...]:
    """The lists as files of the step."""
    return tuple(
        File(path=f"{name}.txt", body=("\n".join(lines) + "\n",)) for name, lines in lists.items() if lines
    )


def install(spec: PackagesSpec, lists: Lists, house: Loc | None) -> list[tuple[Word, ...]]:
    """The words behind `pip install` for each list."""
    pinned = "vendor" in lists
    arguments: list[tuple[Word, ...]] = []
    for name, lines in lists.items():
        if lines:
            # What is no more than a version brings what it needs by itself.
            no_deps = ("--no-deps",) if pinned and name != "vendor" else ()
            arguments.append((*no_deps, *_where(spec, name, house), "-r", step_file(f"{name}.txt")))
    return arguments


def _where(spec: PackagesSpec, name: str, house: Loc | None) -> tuple[Word, ...]:
    if name in ("first", "vendor") and spec.options.first_index and house is None:
        return ("--index-url", spec.options.first_index)
    return where(spec, house)


def where(spec: PackagesSpec, house: Loc | None) -> tuple[Word, ...]:
    """Where pip looks: the wheel house alone, else its own configuration and what was said."""
    if house is not None:
        return ("--no-index", "--find-links", house)
    index = ("--index-url", spec.options.index_url) if spec.options.index_url else ()
    links = (Join("--find-links=", link) for link in spec.options.find_links)
    return (*index, *links)
