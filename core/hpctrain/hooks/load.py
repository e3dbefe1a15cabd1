"""Import one plugin by kind and name; every way this fails names the plugin and its distribution."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from hpctrain.errors import ConfigError, HpctrainError, PluginError, Problem
from hpctrain.hooks.importing import quoting_prints, within
from hpctrain.hooks.scan import Entry, duplicates, installed, names, published_clusters
from hpctrain.versions import HOOK_API, OLDEST_HOOK_API

IMPORT_SECONDS = 60.0
"""For one plugin; cold network disks take ten for a large package."""

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
SLOW_SECONDS = 5
"""An import that takes longer is named: its plugin's author can mend it, and nobody else would know."""


def find(kind: str, name: str, entries: Mapping[str, tuple[Entry, ...]] | None = None) -> Entry:
    """The one entry of this name; ConfigError when it is not installed, PluginError when it is twice."""
    entries_by_id = installed() if entries is None else entries
    matches = entries_by_id.get(f"{kind}:{name}", ())
    if not matches:
        raise _missing(kind, name, names(kind, entries_by_id))
    if len(matches) > 1:
        raise PluginError.of(
            "plugin-duplicate",
            f'{SINGULAR[kind]} "{name}" is provided by more than one distribution: {duplicates(matches)}',
            hint=f"pip uninstall {matches[0].distribution}",
        )
    return matches[0]


def load(entry: Entry) -> ModuleType:
    """Import the plugin's module and check that it speaks this API."""
    module = _imported(entry, lambda: importlib.import_module(entry.module))
    return checked(entry, module)


def load_file(path: Path, run_file: Path) -> tuple[Entry, ModuleType]:
    """Site hooks from a file that the run file names; never found by themselves.

    ConfigError for one that neither this user wrote nor the owner of the run file, whom he trusts by its use.
    """
    import importlib.util

    from hpctrain_job.files import trust  # most runs have no hooks of a site

    accepted = trust.Accepted((str(run_file.stat().st_uid),))
    if fault := trust.file_fault(str(path), accepted):
        message = f"{path} {fault}: it would run as you"
        raise ConfigError.of("not-trusted", message, where="hooks.file", hint=f"cp {path} FILE_OF_YOURS")
    entry = Entry("hooks", path.name, str(path), "file", str(path))
    spec = importlib.util.spec_from_file_location(f"hpctrain_site_{path.stem}", path)

    def executed() -> ModuleType:
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return entry, checked(entry, _imported(entry, executed))


def _imported(entry: Entry, importing: Callable[[], ModuleType]) -> ModuleType:
    """A plugin that ends the program, or does not come to an end itself, has failed."""
    began = time.monotonic()
    try:
        with quoting_prints(entry.label), within(IMPORT_SECONDS):
            module = importing()
    except KeyboardInterrupt:
        _tell(entry, "was interrupted while it was imported")
        raise
    except BaseException as error:
        raise _unimportable(entry, error) from error
    if (seconds := time.monotonic() - began) > SLOW_SECONDS:
        _tell(entry, f"took {seconds:.0f} s to be imported, and every command that uses it waits")
    return module


def _tell(entry: Entry, message: str) -> None:
    print(f"hpctrain: {entry.label} {message}", file=sys.stderr)


def checked(entry: Entry, module: ModuleType) -> ModuleType:
    """The module, if its `HPCTRAIN_API` is one that we support."""
    speaks = getattr(module, "HPCTRAIN_API", None)
    if type(speaks) is not int or not OLDEST_HOOK_API <= speaks <= HOOK_API:
        message = "does not define HPCTRAIN_API" if speaks is None else f"speaks hook API {speaks!r}"
        upgrade = f"pip install --upgrade {entry.distribution} hpctrain"
        ours = f"HPCTRAIN_API = {HOOK_API}      (at the top of {module.__file__})"
        raise PluginError.of(
            "plugin-api",
            f"{SINGULAR[entry.kind]} {entry.label} {message}; this hpctrain supports {_supported()}",
            where=entry.module,
            hint=ours if entry.distribution == "file" else upgrade,
        )
    return module


def outdated(plugins: Iterable[tuple[Entry, object]]) -> Iterator[Problem]:
    """One warning for each distribution with a plugin of an older hook API, for its author has time left."""
    warned: set[str] = set()
    for entry, module in plugins:
        speaks = getattr(module, "HPCTRAIN_API", HOOK_API)
        if isinstance(speaks, int) and speaks < HOOK_API and entry.distribution not in warned:
            warned.add(entry.distribution)
            hint = f"pip install --upgrade {entry.distribution}"
            yield Problem(
                code="plugin-api-old",
                message=f"{entry.label} was written for hook API {speaks}, which later ones refuse",
                notes=(f"this hpctrain supports {_supported()}",),
                hint="hpctrain help plugin-api-old" if entry.distribution == "file" else hint,
                fatal=False,
            )


def _supported() -> str:
    """`1`, or `1 to 3`."""
    return str(HOOK_API) if OLDEST_HOOK_API == HOOK_API else f"{OLDEST_HOOK_API} to {HOOK_API}"


def _missing(kind: str, name: str, installed_names: list[str]) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(name, installed_names, 3, 0.6)
    hint = ""
    if near:
        hint = f'{_key(kind).rpartition(".")[2] or SINGULAR[kind].split()[0]} = "{near[0]}"'
    elif kind == "clusters" and name in published_clusters():
        hint = f"pip install 'hpctrain[{name}]'"
    listed = " ".join(installed_names) or "none"
    return ConfigError.of(
        "no-plugin", f'no {SINGULAR[kind]} "{name}"; installed: {listed}', where=_key(kind), hint=hint
    )


def _key(kind: str) -> str:
    """Where a run file, or `cluster.toml`, names a plugin of this kind."""
    keys = {"clusters": "cluster", "environments": "environment.use", "trainers": "train.use"}
    return {**keys, "schedulers": "scheduler"}.get(kind, "")


def _unimportable(entry: Entry, error: BaseException) -> HpctrainError:
    from hpctrain.hooks.packages import lacking  # no plan without a fault needs it

    return lacking(error, f"{SINGULAR[entry.kind]} {entry.label}", entry.distribution) or PluginError.of(
        "plugin-import",
        f"{SINGULAR[entry.kind]} {entry.label} cannot be imported: {type(error).__name__}: {error}",
        where=entry.module,
        hint=f"pip install --upgrade {entry.distribution}" if entry.distribution != "file" else "",
    )
