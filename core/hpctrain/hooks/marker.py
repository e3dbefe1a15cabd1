"""`hookimpl`, which marks a function of a plugin as the answer to a hook."""

from __future__ import annotations

import pluggy

hookimpl = pluggy.HookimplMarker("hpctrain")
