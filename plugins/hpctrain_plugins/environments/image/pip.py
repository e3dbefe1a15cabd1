"""pip on top of an image: what the image has stays, by a constraint file that is written in the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.plugin import Word

JUDGE = "hpctrain_job.constraint"
NONE: Mapping[str, str] = {}


def install(python: Word, constraint: Word = "", env: Mapping[str, str] = NONE) -> tuple[Word, ...]:
    """pip's command up to the packages; `constraint` is the constraint file of the step.

    The image's own constraint file does not count: its lines stand in `constraint`, but for what is
    replaced. It would also count where pip builds a package, with older tools than the package asks for. An
    empty file takes its place, since pip overlooks a variable that is empty where a pip.conf names the file.
    """
    variables = (f"{name}={value}" for name, value in env.items())
    keep = ("--constraint", constraint) if constraint else ()
    return ("env", "PIP_CONSTRAINT=/dev/null", *variables, python, "-m", "pip", "install", *keep)


def judged(listed: Word, constraint: Word, replaced: Iterable[str]) -> tuple[Word, ...]:
    """Prove that the image is the one of the list, and write what stays of it."""
    return ("python3", "-m", JUDGE, listed, constraint, *replaced)
