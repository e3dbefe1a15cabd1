"""Settings from a JSON file and from flags; a flag wins over the file, the file over the default."""

from __future__ import annotations

import argparse
import difflib
import json
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import FIELDS, Settings, out_of_bounds, together, types

_TRAINER_FIELDS = {name: field for name, field in FIELDS.items() if not field.metadata.get("plan_only")}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadConfig("usage", message, "python -m hpctrain_trl --help")


def read(argv: Sequence[str]) -> Settings:
    """The settings of this process; BadConfig names the first thing that is wrong."""
    flags = vars(_parser().parse_args(argv))
    path = flags.pop("config_file")
    flag_values = {name: value for name, value in flags.items() if value is not None}
    settings = Settings(**{**(_from_file(Path(path)) if path else {}), **flag_values})
    for _, message in out_of_bounds(settings) + together(settings):
        raise BadConfig("setting", message)
    return settings


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="hpctrain_trl", allow_abbrev=False, description=__doc__)
    parser.add_argument("--config", dest="config_file", metavar="FILE", help="settings as JSON")
    for name, field in _TRAINER_FIELDS.items():
        flag = "--model_config" if name == "config" else f"--{name}"
        parser.add_argument(flag, dest=name, help=field.metadata["about"], **_reader(name))
    return parser


def _reader(name: str) -> dict[str, Any]:
    kind = types()[name]
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction, "default": None}
    if kind in (int, float, str):
        return {"type": kind}
    if typing.get_origin(kind) is typing.Literal:
        return {"type": type(typing.get_args(kind)[0]), "metavar": "|".join(map(str, typing.get_args(kind)))}
    if typing.get_origin(kind) is tuple:
        return {"type": lambda text: tuple(text.split(","))}
    return {"type": json.loads, "metavar": "JSON"}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig("config-file", f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadConfig("config-file", f"{path} is not JSON: {error}") from error
    if not isinstance(values, Mapping):
        raise BadConfig("config-file", f"{path} holds no object")
    return {name: _checked(name, value) for name, value in values.items()}


def _checked(name: str, value: object) -> object:
    """`value` in the type of its setting; a string is never taken for a number."""
    if name not in _TRAINER_FIELDS:
        near = difflib.get_close_matches(name, _TRAINER_FIELDS, 1)
        raise BadConfig("setting", f"there is no setting {name}", near[0] if near else "")
    kind = types()[name]
    origin = typing.get_origin(kind)
    if origin is tuple and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if kind is float and type(value) is int:
        return float(value)
    plain = type(typing.get_args(kind)[0]) if origin is typing.Literal else kind
    if type(value) is plain or (origin is Mapping and isinstance(value, dict)):
        return value
    expected = getattr(plain, "__name__", str(plain))
    raise BadConfig("setting", f"{name} is {value!r}, but its type is {expected}")
