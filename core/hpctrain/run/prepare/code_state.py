"""What of the run's own code no commit holds, as git says it. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.errors import HpctrainError, Problem
from hpctrain.model.plan import CodeState
from hpctrain.model.run import RunSpec

if TYPE_CHECKING:
    from hpctrain.run.system.tools import Tools

SECONDS = 20.0
"""A status on a slow disk that takes longer is given up: the plan does without."""


def code_state(run: RunSpec, base: Path, tools: Tools) -> CodeState | None:
    """How the repository of `[code] path` stands; None without one, or where git does not answer."""
    if run.code is None or not run.code.path:
        return None
    folder = base / Path(run.code.path).expanduser()
    if not folder.is_dir() or not any((place / ".git").exists() for place in (folder, *folder.parents)):
        return None
    # Neither a lock nor a program of the repository's own configuration: somebody else may have written it.
    git = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder))
    try:
        status = (*git, "status", "--porcelain", "--untracked-files=all", "-z", "--no-renames", "--", ".")
        changed = tools.run(status, timeout=SECONDS).out
        commit = tools.run((*git, "rev-parse", "--verify", "-q", "HEAD"), timeout=SECONDS, ok=(0, 1))
    except HpctrainError:  # no git here, or a repository that it does not trust
        return None
    return CodeState(commit=commit.out.strip(), changed=changed.count("\0"))


def uncommitted(run: RunSpec, state: CodeState | None) -> Iterator[Problem]:
    """A warning where the run trains what nobody can fetch again."""
    if run.code is None or state is None or not state.changed:
        return
    yield Problem(
        code="dirty-tree",
        message=f"{run.code.path}: {described(state)}; the run takes them as they are",
        where="code.path",
        hint="git commit      (or carry on: the digest names their content)",
        fatal=False,
    )


def described(state: CodeState) -> str:
    """`3 files changed since commit 4f1c9a2e`, or the commit alone."""
    files = f"{state.changed} file{'s' if state.changed != 1 else ''}"
    if not state.commit:
        return f"{files} in a repository without a commit"
    commit = f"commit {state.commit[:8]}"
    return f"{files} changed since {commit}" if state.changed else commit
