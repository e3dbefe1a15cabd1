"""`--isolated`: the same command by a Python that never looked into the user's site-packages."""

from __future__ import annotations

import os
import site
import sys

from hpctrain.errors import ConfigError
from hpctrain.hooks.scan import ISOLATED
from hpctrain.run.system.tools import become


def fault() -> ConfigError | None:
    """Why it cannot be done: hpctrain is itself what would be left out."""
    if not __file__.startswith(f"{site.getusersitepackages()}/") or not site.ENABLE_USER_SITE:
        return None
    return ConfigError.of(
        "isolated",
        f"hpctrain is in {site.getusersitepackages()}, which --isolated leaves out",
        hint="python3 -m venv ~/hpctrain && ~/hpctrain/bin/pip install hpctrain",
    )


def start_again() -> None:
    """Start this program's own command line again, unless that has happened.

    Taking the folder off `sys.path` would be too late: `usercustomize` and the lines of `*.pth` files have
    run before our first line (https://docs.python.org/3/library/site.html).
    """
    if os.environ.get(ISOLATED) and sys.flags.no_user_site:
        return
    program, *words = sys.orig_argv
    become(sys.executable, [program, "-s", *words], {**os.environ, ISOLATED: "1"})
