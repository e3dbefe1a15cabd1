"""What SOURCE means: a folder, a run of ours, or a model in the hub's cache on this computer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from hpctrain.command import RunDirectory
from hpctrain.plugin import ConfigError, IntegrityError, Layout
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.newest import newest


@attrs.frozen
class Source:
    """A checkpoint; of a run also its format and where the run's exports lie, of the hub its name."""

    path: Path
    format: str = "auto"
    exports: Path | None = None
    model: str = ""


def located(
    reference: str, revision: str, environ: Mapping[str, str], say: Callable[[str], object]
) -> Source:
    """The checkpoint that the user means; ConfigError when nothing is called that."""
    path = Path(reference)
    if path.exists() and RunDirectory.at(path) is None:
        return Source(path)
    snapshot = _cached(reference, revision or "main", environ)
    if snapshot is not None:
        return Source(snapshot, model=reference)
    if revision:
        raise ConfigError.of(
            "checkpoint-missing",
            f"no revision {revision!r} of {reference} is in the hub's cache here",
            where=reference,
        )
    if not path.exists() and (reference.count("/") > 1 or reference.startswith(("/", ".", "~"))):
        raise ConfigError.of("checkpoint-missing", f"{reference} does not exist", where=reference)
    return _of_run(_run(reference, environ), say)


def require_paths(**paths: Path | None) -> None:
    """Refuse an option whose path leads nowhere."""
    for name, path in paths.items():
        if path is not None and not path.exists():
            raise ConfigError.of("usage", f"--{name}: {path} does not exist", where=str(path))


def _run(reference: str, environ: Mapping[str, str]) -> RunDirectory:
    from hpctrain.command import find_run

    try:
        return find_run(reference, environ)
    except ConfigError as error:
        from difflib import get_close_matches

        near = get_close_matches(reference, [p.name for p in Path.cwd().iterdir() if p.is_dir()], 1)
        hint, message = (
            near[0] if near else error.problems[0].hint,
            f"there is no folder and no run {reference!r}",
        )
        if reference.count("/") == 1:
            message += f", nor a model of that name in the hub's cache, {_cache(environ)}"
            hint = f"hf download {reference}      (where there is a network; or the path of a folder)"
        elif hint.startswith("hpctrain submit"):
            hint = "the path of a folder with a checkpoint"
        raise ConfigError.of("no-run", message, hint=hint) from None


def all_of(reference: str, environ: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    """The folder of a run's checkpoints with their names' pattern and last file, or the folder itself."""
    path = Path(reference)
    if path.is_dir() and RunDirectory.at(path) is None:
        return path.absolute(), {}
    if path.exists() and not path.is_dir():
        raise ConfigError.of("checkpoint-missing", f"{reference} is not a folder", where=reference)
    home, layout = _home(_run(reference, environ))
    return home / layout.folder, {"name": layout.name, "complete": layout.complete}


def _of_run(run: RunDirectory, say: Callable[[str], object]) -> Source:
    """The newest complete checkpoint of a run, by what its plan says of its trainer."""
    home, layout = _home(run)
    path = newest(home / layout.folder, layout.name, layout.complete, say)
    return Source(path, layout.format, home)


def _home(run: RunDirectory) -> tuple[Path, Layout]:
    """Where a run's checkpoints go, and how its trainer names them."""
    from hpctrain.command import graph_of
    from hpctrain.plugin import Loc
    from hpctrain.toolbox import plain_text

    graph = graph_of(run)
    layout = run.layout
    if layout is None:
        raise ConfigError.of(
            "checkpoint-missing",
            f"the location of {run.title}'s checkpoints is not known: its trainer does not declare it",
        )
    return Path(plain_text(Loc("checkpoints", f"{graph.name}/{run.own_name}"), graph.binding)), layout


def _cached(name: str, revision: str, environ: Mapping[str, str]) -> Path | None:
    """The snapshot that the hub's own library left on this computer; nothing is downloaded."""
    folder = _cache(environ) / f"models--{name.replace('/', '--')}"
    ref = folder / "refs" / revision
    if ".." in (*Path(name).parts, *Path(revision).parts) or not folder.is_dir():
        return None
    try:
        commit = documents.text(ref, documents.SHORT).strip() if ref.is_file() else revision
    except (OSError, ValueError) as error:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{ref} cannot be read: {error}", where=str(ref)
        ) from None
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def _cache(environ: Mapping[str, str]) -> Path:
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '')}/.cache"
    home = environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(environ.get("HF_HUB_CACHE") or f"{home}/hub")
