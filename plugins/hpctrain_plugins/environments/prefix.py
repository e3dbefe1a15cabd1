"""What every environment that is a folder with a `bin` shares: how a command gets into it."""

from __future__ import annotations

from hpctrain.plugin import EnvVar, How, Join, Layer, Loc, Word

OTHERS_KEPT_OUT = (
    EnvVar(
        name="PYTHONNOUSERSITE",
        value="1",
        why="packages in ~/.local would win over the image's, and home may be mounted",
    ),
    EnvVar(name="PYTHONHOME", how=How.UNSET, why="the host's Python is not the image's"),
)
"""Of an image whose own Python is used: its caller's variables may come with it."""


def python(prefix: Word) -> Word:
    """The interpreter of `prefix` by its path."""
    return prefix / "bin/python3" if isinstance(prefix, Loc) else Join(prefix, "/bin/python3")


def layer(prefix: Word) -> Layer:
    """Put `prefix` in front, and keep the user's other Pythons out."""
    folder: Word = prefix / "bin" if isinstance(prefix, Loc) else Join(prefix, "/bin")
    return Layer(
        env=(
            EnvVar(name="PATH", value=folder, how=How.PREPEND, why="python is the environment's"),
            EnvVar(name="VIRTUAL_ENV", value=prefix, why="tools look here for the active environment"),
            EnvVar(
                name="PYTHONNOUSERSITE",
                value="1",
                why="packages in ~/.local would win over the environment's",
            ),
            EnvVar(
                name="PYTHONHOME",
                how=How.UNSET,
                why="another Python's standard library breaks this one",
            ),
        )
    )
