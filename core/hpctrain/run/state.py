"""Where hpctrain keeps what is neither settings nor cache; a plan imports it, and no run with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/hpctrain`, where things lie that are neither settings nor cache."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the XDG rules: a relative path counts as unset
        state = f"{environ.get('HOME') or Path.home()}/.local/state"
    return Path(state) / "hpctrain"
