"""Core's pins: branches become commits, revisions of the hub too, `native` becomes an architecture."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpctrain.defaults import names
from hpctrain.errors import ConfigError, NotReachable
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import RunSpec
from hpctrain.model.step import CONFIG, Pin

if TYPE_CHECKING:
    from hpctrain.model.tools import ProgramRunner

QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20"}
"""Git must not wait for a password that nobody can type."""
_LOGIN = re.compile(
    r"could not read (Username|Password)|Authentication failed|Permission denied \(|terminal prompts disabled"
    r"|error: 40[13]|Repository not found|repository .* not found|Could not read from remote repository",
    re.IGNORECASE,
)
"""What git and servers say to somebody whom they do not know; a private repository is not found, say some."""


@hookimpl
def pin(run: RunSpec, cluster: Cluster, tools: ProgramRunner) -> list[Pin]:
    """Pins of the platform, of git repositories and of models and datasets on the hub."""
    pins = [Pin(names.NATIVE, "platform", os.uname().machine)] if cluster.arch == names.NATIVE else []
    repositories_by_pin = {names.git(url, rev): (url, rev, where) for url, rev, where in repositories(run)}
    for name, (url, rev, where) in repositories_by_pin.items():
        pins.append(Pin(name, "git", _commit(url, rev, where, tools)))
    for name, (repo, kind, revision, where) in snapshots(run).items():
        pins.append(Pin(name, "hub", _revision(repo, kind, revision, where, tools)))
    return [*pins, *_configs(run, tuple(pins), tools)]


def _ways_in(url: str) -> str:
    """How git is let into a private repository where nobody can type a password."""
    if not url.startswith(("http:", "https:")):
        return "ssh-add here, or ForwardAgent for this host in your ~/.ssh/config; the server knows the key"
    host, _, path = url.partition("://")[2].partition("/")
    ssh = f"git@{host.rpartition('@')[2]}:{path}"
    return f'git = "{ssh}" with an ssh key, or a login for {host} in ~/.netrc (chmod 600)'


def repositories(run: RunSpec) -> Iterator[tuple[str, str, str]]:
    """Every repository whose revision moves: address, revision, key path."""
    rows = [(a.git, a.rev, f"assets.{name}.git") for name, a in run.assets.items()]
    rows += [(p.git, p.rev, "environment.packages") for p in run.environment.packages]
    rows += [(p.git, p.rev, "environment.compile") for p in run.environment.compile]
    if run.code:
        rows.append((run.code.git, run.code.rev, "code.git"))
    yield from (row for row in rows if row[0] and not names.is_commit(row[1]))


def snapshots(run: RunSpec) -> dict[str, tuple[str, str, str, str]]:
    """Every repository of the hub whose revision moves, by its pin's name."""
    rows = {}
    for name, asset in run.assets.items():
        if asset.hub and not names.is_commit(asset.revision):
            kind = "dataset" if names.kind(name, asset) == "dataset" else "model"
            revision = asset.revision or "main"
            rows[names.hub(asset.hub, kind, revision)] = (asset.hub, kind, revision, f"assets.{name}.hub")
    return rows


def _configs(run: RunSpec, pins: tuple[Pin, ...], tools: ProgramRunner) -> Iterator[Pin]:
    """The `config.json` of every model that comes from the hub: the plan says how large it is."""
    for name, asset in run.assets.items():
        if asset.hub and names.kind(name, asset) == "model":
            from hpctrain.defaults import model_configs  # what speaks to the hub takes long to import

            commit = names.revision(pins, asset.hub, "model", asset.revision)
            text = model_configs.fetched(asset.hub, commit, f"assets.{name}.hub", tools)
            if text:
                yield Pin(name, CONFIG, text)


def _commit(url: str, rev: str, where: str, tools: ProgramRunner) -> str:
    ref = rev or "HEAD"
    refs = (ref, f"{ref}^{{}}") if rev else (ref,)
    # The user's own agent, proxy and credentials count: it is the user's repository.
    argv = ("git", "ls-remote", "--", url, *refs)
    done = tools.run(argv, env=QUIET, inherit=True, timeout=120, ok=range(256))
    if done.code:
        error_lines = tuple(tools.scrubbed(done.err).strip().splitlines()[-3:])
        hint = _ways_in(url) if _LOGIN.search(done.err) else ""
        raise NotReachable.of("git", f"git cannot read {url}", where=where, notes=error_lines, hint=hint)
    rows: dict[str, str] = {}
    for line in done.out.splitlines():
        commit, name = line.split("\t", 1)
        rows[name] = commit
    # A tag object is not a commit: `^{}` names what it points to. Git prefers tags to branches.
    for name in (f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/heads/{ref}", ref):
        if name in rows:
            return rows[name]
    raise ConfigError.of(
        "no-revision",
        f"{url} has no branch or tag {ref}",
        where=where,
        hint="rev = the full 40 digits of a commit, a branch or a tag",
    )


def _revision(repo: str, kind: str, revision: str, where: str, tools: ProgramRunner) -> str:
    from hpctrain_job import hub  # what speaks to the hub takes long to import
    from hpctrain_job.downloads.web import Failed, Patience, Refused

    token = hub.token()
    if token:
        tools.hide(token)
    repository = hub.Repo(repo, kind, token=token)
    try:
        return repository.listing(revision, patience=Patience(tries=4, longest=30)).commit
    except Refused as error:
        message = hub.explained(error, repository)
        code = "gated" if error.status in (401, 403) else "no-revision"
        raise ConfigError.of(code, str(message), where=where) from None
    except Failed as error:
        raise NotReachable.of("hub", str(error), where=where, hint="HF_ENDPOINT names a mirror") from None
