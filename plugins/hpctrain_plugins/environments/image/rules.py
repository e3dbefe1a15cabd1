"""Known failures of whatever is an image: what a log says, why, and what mends it."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="image-gone",
        pattern=r"ls: cannot access '[^']*\.(?:sif|sqsh|img)': No such file|and is gone: submit again",
        cause="an image or overlay was there when the run was planned: a purge, or somebody moved it",
        fix="hpctrain submit run.toml      (makes it again; a path of yours must be put back)",
    ),
    Rule(
        name="image-damaged",
        pattern=r"hpctrain: \S+ is damaged and was set aside",
        cause="an image or overlay is no longer what was built: its sums differ from its manifest",
        fix="hpctrain submit run.toml      (it is rebuilt)",
    ),
)
