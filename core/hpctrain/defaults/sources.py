"""Commands that bring the user's own files: a repository at a commit, or a folder beside the run file."""

from __future__ import annotations

from hpctrain.model.words import Cmd, Loc, Var, Word

RUNFILE = "runfile"
"""The role that stands for the run file's own folder, from which its relative paths start."""


def local(path: str) -> Word:
    """A path of the run file as a word: absolute ones as they are."""
    return path if path.startswith("/") else Loc(RUNFILE, path)


def clone(url: str, commit: str, into: Word) -> tuple[Cmd, ...]:
    """A repository at one commit, with its submodules.

    The whole history comes along: not every server hands out a single commit by its name.
    """
    return (
        Cmd.of("git", "clone", "--quiet", "--no-checkout", "--", url, into),
        Cmd.of("git", "-C", into, "-c", "advice.detachedHead=false", "checkout", "--quiet", commit),
        Cmd.of("git", "-C", into, "submodule", "update", "--quiet", "--init", "--recursive"),
    )


def copy(path: str, into: Word, *, sha256: str, python: Word = Var("HPC_PYTHON")) -> tuple[Cmd, ...]:  # noqa: B008
    """A file or folder, refused when it is no longer what was planned: the key names its content."""
    expect = ("--sha256", sha256) if sha256 else ()
    return (Cmd.of(python, "-m", "hpctrain_job.tree", local(path), into, *expect),)
