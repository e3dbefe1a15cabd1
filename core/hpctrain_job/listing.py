"""The list of what an image has: `hpctrain_job.packages` writes it there, whatever is put on top reads it.

It begins with `# python 3.12 aarch64`; other facts follow (`# cuda 12.9`), then `name==version` for each
package. `# constraint regex==2024.11.6` is a line of the image's constraint file about a package that is not
there: NVIDIA's images 25.03 to 25.09 have such a file, and their pip obeys it.
https://docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

PYTHON, CONSTRAINT = "python", "constraint"
_COMPARABLE = re.compile(
    r"v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?\Z",
    re.IGNORECASE,
)
"""A version as pip compares them (PEP 440); Debian's packages also have others, which pip refuses to read."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:[=<>!~;].*)?\Z")


class Listing(NamedTuple):
    """What an image has."""

    python: str
    """`3.12`."""
    arch: str
    packages: Mapping[str, str]
    """Version by distribution."""
    constraints: tuple[str, ...]
    """Requirements of the image's constraint file about packages that it does not have."""
    facts: Mapping[str, str]
    """What else was asked: cuda, nccl, and the size of the constraint file."""

    def lines(self) -> Iterator[str]:
        """The list as text."""
        yield f"# {PYTHON} {self.python} {self.arch}".rstrip()
        yield from (f"# {name} {value}" for name, value in sorted(self.facts.items()))
        yield from (f"{name}=={version}" for name, version in sorted(self.packages.items()))
        yield from (f"# {CONSTRAINT} {line}" for line in self.constraints)

    def packages_kept(self, replaced: Iterable[str]) -> dict[str, str]:
        """The packages that stay: all but those named, as far as their versions can be compared."""
        names = set(map(normal, replaced))
        rows = self.packages.items()
        return {name: version for name, version in rows if name not in names and _COMPARABLE.match(version)}

    def constraints_kept(self, replaced: Iterable[str]) -> list[str]:
        """The lines of the constraint file that still hold."""
        names = set(map(normal, replaced))
        return [line for line in self.constraints if constrained(line) not in names]


def read(text: str) -> Listing:
    """The list of a file, or of a lock, where it is one line."""
    head, *lines = text[text.find("# ") :].replace(" | ", "\n").splitlines() or [""]
    words = head.split()
    if words[:2] != ["#", PYTHON] or len(words) < 3:
        raise ValueError("the list does not start with the image's Python")
    notes = [line[2:].partition(" ") for line in lines if line.startswith("# ")]
    packages = dict(line.split("==", 1) for line in lines if "==" in line and not line.startswith("#"))
    return Listing(
        python=words[2],
        arch=" ".join(words[3:]),
        packages={normal(name): version.strip() for name, version in packages.items()},
        constraints=tuple(text for name, _, text in notes if name == CONSTRAINT),
        facts={name: text for name, _, text in notes if name != CONSTRAINT},
    )


def one_line(listing: Listing) -> str:
    """The list for a lock, which stays readable with it."""
    return " | ".join((f"{len(listing.packages)} packages", *listing.lines()))


def constrained(line: str) -> str:
    """The package that a line of a constraint file is about; nothing for options and addresses."""
    match = _REQUIREMENT.match(re.sub(r"(^|\s)#.*", "", line).strip())
    return normal(match[1]) if match else ""


def normal(name: str) -> str:
    """One spelling of a distribution's name: the index treats `_`, `.` and `-` alike."""
    return re.sub(r"[-_.]+", "-", name).lower()
