"""How pip behaves in a step: it asks nothing, tells what matters and does not give up soon."""

from __future__ import annotations

from hpctrain.plugin import EnvVar, Layer

PATIENT = {"PIP_RETRIES": "7", "PIP_RESUME_RETRIES": "7"}
"""Seven tries with doubled pauses are half a minute: a proxy that is started anew is back. Since 25.1 pip
goes on where a download broke off; an older one fails at once, and does not mind the second variable."""

_PIP_VARIABLES = {
    "PIP_DISABLE_PIP_VERSION_CHECK": ("1", "a newer pip is no news in a log"),
    "PIP_NO_INPUT": ("1", "nobody can answer a question in a job"),
    "PIP_PROGRESS_BAR": ("off", "a bar in a log is noise"),
    "PIP_RETRIES": (PATIENT["PIP_RETRIES"], "a proxy that is started anew is back within half a minute"),
    "PIP_RESUME_RETRIES": (PATIENT["PIP_RESUME_RETRIES"], "a download that broke off goes on where it was"),
    "PYTHONNOUSERSITE": ("1", "packages in ~/.local must not satisfy a requirement"),
}


def layer() -> Layer:
    """Around every step in which pip runs."""
    return Layer(
        env=tuple(EnvVar(name=n, value=value, why=why) for n, (value, why) in _PIP_VARIABLES.items())
    )
