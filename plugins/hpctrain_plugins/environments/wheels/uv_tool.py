"""uv as hpctrain starts it: found beside the running Python, trusting what this computer trusts."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

_TRUST = ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")
"""The same switch by its name of today and by its older one; a uv ignores the one it does not know."""
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX")


def path(tools: ProgramRunner) -> str | None:
    """The program: of this installation, whose `bin` need not be on PATH, else one that is on PATH."""
    schemes = (sysconfig.get_default_scheme(), "posix_user")  # `pip install --user` has a folder of its own
    folders = (str(Path(sys.executable).parent), *(sysconfig.get_path("scripts", name) for name in schemes))
    beside = next((file for file in (Path(f, "uv") for f in folders) if os.access(file, os.X_OK)), None)
    return str(beside) if beside else tools.which("uv")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The certificates of the system count, as they do for pip; SSL_CERT_FILE still comes first.

    So does the index that pip is told of, which builds the environment later: by a variable, because it may
    hold a login. A user who has decided otherwise is obeyed.
    """
    chosen = next((environ[name] for name in _TRUST if environ.get(name)), "1")
    return {**dict.fromkeys(_TRUST, chosen), **_index(environ)}


def _index(environ: Mapping[str, str]) -> dict[str, str]:
    from hpctrain_job import sdist  # what speaks to an index takes long to import

    home = Path(environ.get("HOME", "/"))
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "uv/uv.toml")
    files = (Path("/etc/uv/uv.toml"), configuration, Path(environ.get("UV_CONFIG_FILE") or configuration))
    if any(environ.get(name) for name in _INDEXES) or any(file.is_file() for file in files):
        return {}
    index = next(iter(sdist.configured(environ).indexes), sdist.DEFAULT)
    return {"UV_DEFAULT_INDEX": index} if index != sdist.DEFAULT else {}
