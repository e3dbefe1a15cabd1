"""How pip behaves in a step: it asks nothing, tells what matters and does not give up soon. On top of an
image, what the image has stays, by a constraint file that is written in the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.plugin import EnvVar, Layer, Word

JUDGE = "hpctrain_job.constraint"
NONE: Mapping[str, str] = {}
PATIENT = {"PIP_RETRIES": "7", "PIP_RESUME_RETRIES": "7"}
"""Seven tries with doubled pauses are half a minute: a proxy that is started anew is back. Since 25.1 pip
goes on where a download broke off; an older one fails at once, and does not mind the second variable."""

_PIP_VARIABLES = {
    "PIP_DISABLE_PIP_VERSION_CHECK": ("1", "a newer pip is no news in a log"),
    "PIP_NO_INPUT": ("1", "nobody can answer a question in a job"),
    "PIP_PROGRESS_BAR": ("off", "a bar in a log is noise"),
    "PIP_RETRIES": (PATIENT["PIP_RETRIES"], "a proxy that is started anew is back within half a minute"),
    "PIP_RESUME_RETRIES": (PATIENT["PIP_RESUME_RETRIES"], "a download that broke off goes on where it was"),
    "PYTHONNOUSERSITE": ("1", "packages in ~/.local must not satisfy a requirement"),
}


def layer() -> Layer:
    """Around every step in which pip runs."""
    return Layer(
        env=tuple(EnvVar(name=n, value=value, why=why) for n, (value, why) in _PIP_VARIABLES.items())
    )


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
