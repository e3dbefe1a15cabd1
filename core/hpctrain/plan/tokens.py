"""Where a token may be: what `submit` reads, and an ejected run.sh, in the same order, and its task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from hpctrain.errors import ConfigError
from hpctrain.model.words import Join, Loc, Secret, Var, Word

OWN_NAME = Var("HPC_OWN")
"""The run's own name in its scripts: `render/identity.sh`."""
STATE = "state"
"""The role that holds secrets: private, never under a run directory."""
WANDB_HOST = "api.wandb.ai"
_VARIABLES = {"huggingface": "HF_TOKEN", "wandb": "WANDB_API_KEY"}


@frozen
class InVariable:
    """A variable of the shell."""

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


@frozen
class InFile:
    """A file that holds nothing else; its path begins in the variable `base`, where that is set."""

    path: str
    base: str = ""
    otherwise: str = ""
    """What stands for the variable where it is not set; empty: then there is no such file."""

    def __str__(self) -> str:
        return f"{self.otherwise or (self.base and f'${self.base}')}{self.path}"


@frozen
class InNetrc:
    """A password of ~/.netrc, or of the file that $NETRC names."""

    host: str

    def __str__(self) -> str:
        return f"~/.netrc (machine {self.host})"


TokenPlace = InVariable | InFile | InNetrc

_PLACES: Mapping[str, tuple[TokenPlace, ...]] = {
    "huggingface": (
        InVariable("HF_TOKEN"),
        InVariable("HUGGING_FACE_HUB_TOKEN"),
        InFile("", base="HF_TOKEN_PATH"),
        InFile("/token", base="HF_HOME"),
        InFile("/huggingface/token", base="XDG_CACHE_HOME", otherwise="~/.cache"),
        InFile("~/.huggingface/token"),
    ),
    "wandb": (InVariable("WANDB_API_KEY"), InNetrc(WANDB_HOST)),
}


def variable(name: str) -> str:
    """The variable in which programs look for a token; another secret's is its own name in capitals."""
    return _VARIABLES.get(name) or re.sub(r"\W", "_", name).upper()


def places(name: str, settings: Mapping[str, Any] | None = None) -> tuple[TokenPlace, ...]:
    """Where the token may be, best first: as settings say, else as its tools do, or in its variable."""
    if settings and name in settings:
        return (_in_settings(name, settings[name]),)
    return _PLACES.get(name) or (InVariable(variable(name)),)


def _in_settings(name: str, source: Any) -> TokenPlace:
    where = f"secrets.{name}"
    if not isinstance(source, Mapping) or len(source) != 1 or not {*source} <= {"file", "env"}:
        raise ConfigError.of(
            "secret",
            f"{where} must say where the token comes from",
            where=where,
            hint=f'{name} = {{ file = "~/.config/{name}-token" }}   or   {{ env = "NAME" }}',
        )
    if "env" in source:
        return InVariable(str(source["env"]))
    return InFile(str(source["file"]))


def folder_in_job(run: str, step: Word) -> Join:
    """The folder of a step's tokens in the scripts of a run of this name."""
    return Join(Loc(STATE, f"secrets/{run}"), "-", OWN_NAME, "/", step)


def place_in_job(run: str, step: str, secret: Secret) -> Join:
    """The file of one token there."""
    return Join(folder_in_job(run, step), "/", secret.name)
