"""A user's own settings: the account, where things lie on each cluster, defaults of every run.

```toml
account = "GEN150"                  # the account that jobs are charged to
[cluster.frontier]
account = "CFD204"                  # for this cluster alone
assets = "/lustre/orion/…/assets"   # a storage role's path; or any table of its cluster.toml
[run.checkpoint]
keep = 5                            # keys of the run file, one layer below it
[secrets]
wandb = { file = "~/.wandb-token" } # a private file, or { env = "NAME" }
[ui]
color = "never"
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError
from hpctrain.runfile.judging.rules import check_keys
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.keys import Keys
from hpctrain.runfile.layers.layers import Tier, merge
from hpctrain.runfile.reading.text import Document, read_toml

PERSONAL: tuple[Keys, ...] = (("resources", "account"), ("resources", "mail"), ("resources", "notify"))
"""Keys that say for whom: two people with the same run have the same digest."""


@frozen(kw_only=True)
class Ui:
    """How output looks; options and environment variables win over it."""

    color: Literal["auto", "always", "never"] = "auto"
    """When output is coloured; auto: on a terminal."""
    ascii: bool = False
    """No characters beyond ASCII."""


@frozen(kw_only=True)
class Settings:
    """The settings file, or nothing when there is none."""

    account: str = ""
    """The account that jobs are charged to."""
    cluster: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Facts of one cluster as you have them: its `account`, the path of a storage role, any table of its
    cluster.toml."""
    run: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys of every run file, one layer below it."""
    secrets: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """Where each token is: { file = "~/.wandb-token" }, a private file, or { env = "NAME" }."""
    ui: Ui = attrs.field(factory=Ui)
    """How output looks."""
    document: Document | None = attrs.field(default=None, metadata={"file": False})

    def run_tiers(self, cluster: str, *, personal: bool = False) -> tuple[Tier, ...]:
        """Run-file keys: `[run]`, then the account, the cluster's own last.

        With `personal` only for whom the run is, and a stricter policy: what is no part of the run.
        """
        tiers = []
        run = _personal(self.run) if personal else self.run
        if run:
            tiers.append(self._tier(run, ("run",)))
        cluster_table = self.cluster.get(cluster, {})
        for account, place in (
            (self.account, ("account",)),
            (cluster_table.get("account"), ("cluster", cluster, "account")),
        ):
            if account:
                data = {"resources": {"account": account}}
                tiers.append(self._tier(data, (), {("resources", "account"): place}))
        return tuple(tiers)

    def fact_tier(self, cluster: str) -> Tier | None:
        """Facts of one cluster, a bare string as the path of a storage role."""
        table = {k: v for k, v in self.cluster.get(cluster, {}).items() if k != "account"}
        if not table:
            return None
        prefix = ("cluster", cluster)
        data = {key: value for key, value in table.items() if not isinstance(value, str)}
        roles = {key: {"path": value} for key, value in table.items() if isinstance(value, str)}
        moved: dict[Keys, Keys] = {("storage", role, "path"): (*prefix, role) for role in roles}
        if roles:
            data["storage"] = {**roles, **data.get("storage", {})}
        return self._tier(data, prefix, moved)

    def _tier(self, data: Mapping[str, Any], prefix: Keys, moved: Mapping[Keys, Keys] | None = None) -> Tier:
        return Tier(name="settings", data=data, document=self.document, prefix=prefix, moved=moved or {})


def _personal(run: Mapping[str, Any]) -> dict[str, Any]:
    resources = run.get("resources")
    own = {
        key: value
        for key, value in (resources.items() if isinstance(resources, dict) else ())
        if ("resources", key) in PERSONAL
    }
    policy = {"policy": run["policy"]} if "policy" in run else {}
    return {**policy, "resources": own} if own else policy


_CHECKS = {(Settings, "cluster"): check_keys, (Settings, "secrets"): check_keys}


def settings_path(environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Where the settings are, and whether the user named the file."""
    if environ.get("HPCTRAIN_SETTINGS"):
        return Path(environ["HPCTRAIN_SETTINGS"]), True
    config = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME') or '/'}/.config"
    return Path(config) / "hpctrain" / "settings.toml", False


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The user's settings; a file that was named must exist, and /dev/null is none."""
    path, named = settings_path(environ)
    if (not named and not path.exists()) or str(path) == os.devnull:
        return Settings()
    document = read_toml(path)
    settings, faults = Strict(_CHECKS)(document.data, Settings)
    if settings is None:
        tier = Tier(name="settings", data=document.data, document=document)
        merged = merge([tier], main=tier)
        raise ConfigError(*merged.problems(faults))
    return attrs.evolve(settings, document=document)
