"""An import that failed because an optional package is not installed, as an error with its cure."""

from __future__ import annotations

from hpctrain.errors import ConfigError


def lacking(error: BaseException, user: str, *distributions: str) -> ConfigError | None:
    """The error for an import that `user` made; None when no extra of a distribution brings the package.

    hpctrain's extras are looked at first, then those of the `distributions`.
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    # only what is missing needs it
    from hpctrain_job.lacking import DISTRIBUTION, NO_PACKAGE, cure, extra_of, message

    package = error.name.partition(".")[0]
    for distribution in (DISTRIBUTION, *distributions):
        if extra_of(package, distribution):
            return ConfigError.of(NO_PACKAGE, message(user, package), hint=cure(package, distribution))
    return None
