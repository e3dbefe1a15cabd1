"""What pip must not replace in an image: `python -m hpctrain_job.constraint LIST FILE [NAME …]`, run in it.

Proves that the image has what LIST says, then writes FILE, a constraint file for pip: what the image has, and
what its own constraint file says of other packages, without the packages that are named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpctrain_job import listing, packages
from hpctrain_job.listing import Listing

LIMIT = 8


def differences(listed: Listing, actual: Listing) -> Iterator[str]:
    """What the list says and the image has otherwise."""
    if listed.python != actual.python:
        yield f"python {listed.python} (here {actual.python})"
    for name, version in sorted(listed.packages.items()):
        version_here = actual.packages.get(name, "none")
        if version_here != version:
            yield f"{name} {version} (here {version_here})"


def text(listed: Listing, replaced: Sequence[str]) -> str:
    """The constraint file."""
    rows = [f"{name}=={version}" for name, version in sorted(listed.packages_kept(replaced).items())]
    return "".join(f"{line}\n" for line in (*rows, *listed.constraints_kept(replaced)))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    source, target, *replaced = sys.argv[1:] if argv is None else argv
    listed = listing.read(Path(source).read_text(encoding="utf-8"))
    if different := list(differences(listed, packages.listing_here())):
        others_text = f" and {len(different) - LIMIT} more" if different[LIMIT:] else ""
        message = (
            f"hpctrain: the image is not what its list says: {', '.join(different[:LIMIT])}{others_text}"
        )
        print(message, file=sys.stderr)
        return 1
    Path(target).write_text(text(listed, replaced), encoding="utf-8")
    for name in replaced:
        version = listed.packages.get(listing.normal(name))
        print(f"hpctrain: {name} {version} of the image may be replaced" if version else f"no {name} in it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
