"""Known failures of whatever is an image: what a log says, why, and what mends it."""

from __future__ import annotations

from hpctrain.plugin import Rule

RULES = (
    Rule(
        name="image-not-as-known",
        pattern=r"hpctrain: the image is not what its list says",
        cause="the image has other packages than the list that the run was locked with",
        fix="hpctrain lock      (without `has`: a path now holds another image than the one that was listed)",
    ),
    Rule(
        name="image-gone",
        pattern=r"ls: cannot access '[^']*\.(?:sif|sqsh|img)': No such file"
        r"|and is gone: (?:submit again|nothing was run)",
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


def another_version(technology: str) -> Rule:
    """pip was asked for another version of what the image has."""
    return Rule(
        name="image-kept",
        pattern=r"The user requested \(constraint\) \S+",
        cause="the image has another version of a package than the run asks for, and keeps it",
        fix=f'[environment.{technology}]\nreplace = ["…"]      (its name, to have it replaced)',
    )
