"""Datasets of the hub: in its cache where they are, else brought there when there is a network."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hpctrain_job.files import documents
from hpctrain_tokens.faults import DataError

TRIES = 3
"""A person waits for it: a hub that does not answer is told in seconds, not after minutes."""

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)


def home() -> Path:
    """Where the hub's own tools keep what they fetched."""
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")


def cached(name: str, kind: str = "dataset", revision: str = "") -> Path | None:
    """The snapshot of a repository in the cache of the hub's tools, if it is there whole."""
    top = Path(os.environ.get("HF_HUB_CACHE") or home() / "hub") / f"{kind}s--{name.replace('/', '--')}"
    ref = top / "refs" / (revision or "main")
    try:
        commit = documents.text(ref, documents.SHORT).strip() if ref.is_file() else revision
    except (OSError, ValueError) as error:
        raise DataError.of("data-hub", f"cannot be read: {error}", file=str(ref)) from None
    folder = top / "snapshots" / commit if commit else top / "none"
    return folder if folder.is_dir() else None


def folder(name: str, revision: str = "", kind: str = "dataset", files: tuple[str, ...] = ()) -> Path:
    """The folder of a repository, fetched if need be: all of it, or the `files` of these patterns."""
    from hpctrain_job import hub  # late: it knows the network

    if not NAME.match(name):
        raise DataError.of("no-input", f"{name} is neither a file, a folder nor a name of the hub", file=name)
    cached_folder = cached(name, kind, revision)
    if cached_folder is not None:
        return cached_folder
    target = home() / "hpctrain" / f"{kind}s--{name.replace('/', '--')}@{revision or 'main'}"
    if target.is_dir():
        return target
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        message = f"{name} is not in the cache, and HF_HUB_OFFLINE is set"
        raise DataError.of("no-input", message, file=str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    argv = [name, "--kind", kind, "--revision", revision or "main", *(f"--include={p}" for p in files)]
    if hub.main([*argv, "--into", str(target), "--partial", str(partial), f"--tries={TRIES}"]) != 0:
        message = f"{name} could not be fetched; see the reason above"
        fetch = f"hf download {name} --repo-type {kind}"
        raise DataError.of("data-hub", message, file=name, hint=f"{fetch}, where there is a network")
    return target
