"""Import one plugin by kind and name; every way this fails names the plugin and its distribution."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from hpctrain.errors import ConfigError, PluginError
from hpctrain.hooks.scan import Entry, duplicates, installed, names
from hpctrain.versions import HOOK_API

SINGULAR = {
    "clusters": "cluster",
    "schedulers": "scheduler",
    "environments": "environment",
    "trainers": "trainer",
    "checkpoints": "checkpoint format",
    "converters": "converter",
    "data": "data kind",
    "hooks": "site hooks",
    "commands": "command",
}
EXTRAS = ("olivia", "alps", "frontier", "isambard", "leonardo", "local")


def find(kind: str, name: str, entries: Mapping[str, tuple[Entry, ...]] | None = None) -> Entry:
    """The one entry of this name; ConfigError when it is not installed, PluginError when it is twice."""
    known = installed() if entries is None else entries
    found = known.get(f"{kind}:{name}", ())
    if not found:
        raise _missing(kind, name, names(kind, known))
    if len(found) > 1:
        raise PluginError.of(
            "plugin-duplicate",
            f'{SINGULAR[kind]} "{name}" is provided by more than one distribution: {duplicates(found)}',
            hint=f"pip uninstall {found[0].distribution}",
        )
    return found[0]


def load(entry: Entry) -> ModuleType:
    """Import the plugin's module and check that it speaks this API."""
    try:
        module = importlib.import_module(entry.module)
    except Exception as error:
        raise _unimportable(entry, error) from error
    return checked(entry, module)


def load_file(path: Path) -> tuple[Entry, ModuleType]:
    """Site hooks from a file that the run file names; never found by themselves."""
    import importlib.util

    entry = Entry("hooks", path.name, str(path), "file", str(path))
    spec = importlib.util.spec_from_file_location(f"hpctrain_site_{path.stem}", path)
    try:
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")  # noqa: TRY301
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:
        raise _unimportable(entry, error) from error
    return entry, checked(entry, module)


def checked(entry: Entry, module: ModuleType) -> ModuleType:
    """The module, if its `HPCTRAIN_API` is ours."""
    speaks = getattr(module, "HPCTRAIN_API", None)
    if speaks != HOOK_API:
        said = "does not say HPCTRAIN_API" if speaks is None else f"speaks hook API {speaks!r}"
        upgrade = f"pip install --upgrade {entry.distribution} hpctrain"
        ours = f"HPCTRAIN_API = {HOOK_API}      (at the top of {module.__file__})"
        raise PluginError.of(
            "plugin-api",
            f"{SINGULAR[entry.kind]} {entry.said} {said}; this hpctrain speaks {HOOK_API}",
            where=entry.module,
            hint=ours if entry.distribution == "file" else upgrade,
        )
    return module


def _missing(kind: str, name: str, known: list[str]) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(name, known, 3, 0.6)
    hint = ""
    if near:
        hint = f'{_key(kind).rpartition(".")[2] or SINGULAR[kind].split()[0]} = "{near[0]}"'
    elif kind == "clusters" and name in EXTRAS:
        hint = f"pip install 'hpctrain[{name}]'"
    listed = " ".join(known) or "none"
    return ConfigError.of(
        "no-plugin", f'no {SINGULAR[kind]} "{name}"; installed: {listed}', where=_key(kind), hint=hint
    )


def _key(kind: str) -> str:
    """Where a run file, or `cluster.toml`, names a plugin of this kind."""
    keys = {"clusters": "cluster", "environments": "environment.use", "trainers": "train.use"}
    return {**keys, "schedulers": "scheduler"}.get(kind, "")


def _unimportable(entry: Entry, error: Exception) -> PluginError:
    return PluginError.of(
        "plugin-import",
        f"{SINGULAR[entry.kind]} {entry.said} cannot be imported: {type(error).__name__}: {error}",
        where=entry.module,
        hint=f"pip install --upgrade {entry.distribution}" if entry.distribution != "file" else "",
    )
