"""Functions that plugins share with core: pins by name, sources, words of scripts, files, records.

Values and errors come from `hpctrain.plugin`, what only commands need from `hpctrain.command`. These names
are API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.lazy import names_of

if TYPE_CHECKING:
    from hpctrain.defaults.limits import uncounted as uncounted_limits
    from hpctrain.defaults.names import NATIVE, pinned_value
    from hpctrain.defaults.names import arch as target_arch
    from hpctrain.defaults.names import commit as pinned_commit
    from hpctrain.defaults.names import git as git_pin_name
    from hpctrain.defaults.names import kind as asset_kind
    from hpctrain.defaults.sources import clone as clone_source
    from hpctrain.defaults.sources import copy as copy_source
    from hpctrain.hooks.load import find as find_plugin
    from hpctrain.hooks.load import load as load_plugin
    from hpctrain.hooks.scan import Entry
    from hpctrain.hooks.scan import installed as installed_plugins
    from hpctrain.hooks.scan import names as installed_names
    from hpctrain.plan.fact_layers import VISIBLE as VISIBLE_GPUS
    from hpctrain.plan.queues import nodes as node_count
    from hpctrain.plan.startup import SHARED as SHARED_START
    from hpctrain.plan.startup import best as best_start
    from hpctrain.plan.startup import broadcast_pays
    from hpctrain.render.shell import opened as resolved_word
    from hpctrain.render.shell import owners as accepted_owners
    from hpctrain.render.shell import plain as plain_text
    from hpctrain.render.shell import quoted
    from hpctrain.run.artifacts.artifact import differing as damaged_file
    from hpctrain.run.disk.record import Record
    from hpctrain.run.steps.submit import UNCLEAR
    from hpctrain.run.system.files import make_folder
    from hpctrain.run.system.files import write as write_file
    from hpctrain.run.system.scrub import scrub
    from hpctrain.run.system.tools import ToolFailed
    from hpctrain.run.this_computer import state_folder
    from hpctrain.runfile.reading.toml import TOMLDecodeError
    from hpctrain.runfile.reading.toml import loads as read_toml
    from hpctrain.versions import DISTRIBUTION
else:
    __getattr__ = names_of(
        __name__,
        {
            "uncounted_limits": "hpctrain.defaults.limits:uncounted",
            "NATIVE": "hpctrain.defaults.names:NATIVE",
            "target_arch": "hpctrain.defaults.names:arch",
            "pinned_commit": "hpctrain.defaults.names:commit",
            "git_pin_name": "hpctrain.defaults.names:git",
            "asset_kind": "hpctrain.defaults.names:kind",
            "pinned_value": "hpctrain.defaults.names:pinned_value",
            "clone_source": "hpctrain.defaults.sources:clone",
            "copy_source": "hpctrain.defaults.sources:copy",
            "find_plugin": "hpctrain.hooks.load:find",
            "load_plugin": "hpctrain.hooks.load:load",
            "Entry": "hpctrain.hooks.scan:Entry",
            "installed_plugins": "hpctrain.hooks.scan:installed",
            "installed_names": "hpctrain.hooks.scan:names",
            "VISIBLE_GPUS": "hpctrain.plan.fact_layers:VISIBLE",
            "node_count": "hpctrain.plan.queues:nodes",
            "SHARED_START": "hpctrain.plan.startup:SHARED",
            "best_start": "hpctrain.plan.startup:best",
            "broadcast_pays": "hpctrain.plan.startup:broadcast_pays",
            "resolved_word": "hpctrain.render.shell:opened",
            "accepted_owners": "hpctrain.render.shell:owners",
            "damaged_file": "hpctrain.run.artifacts.artifact:differing",
            "plain_text": "hpctrain.render.shell:plain",
            "quoted": "hpctrain.render.shell:quoted",
            "make_folder": "hpctrain.run.system.files:make_folder",
            "write_file": "hpctrain.run.system.files:write",
            "Record": "hpctrain.run.disk.record:Record",
            "state_folder": "hpctrain.run.this_computer:state_folder",
            "scrub": "hpctrain.run.system.scrub:scrub",
            "UNCLEAR": "hpctrain.run.steps.submit:UNCLEAR",
            "ToolFailed": "hpctrain.run.system.tools:ToolFailed",
            "TOMLDecodeError": "hpctrain.runfile.reading.toml:TOMLDecodeError",
            "read_toml": "hpctrain.runfile.reading.toml:loads",
            "DISTRIBUTION": "hpctrain.versions:DISTRIBUTION",
        },
    )

__all__ = [
    "DISTRIBUTION",
    "NATIVE",
    "SHARED_START",
    "UNCLEAR",
    "VISIBLE_GPUS",
    "Entry",
    "Record",
    "TOMLDecodeError",
    "ToolFailed",
    "accepted_owners",
    "asset_kind",
    "best_start",
    "broadcast_pays",
    "clone_source",
    "copy_source",
    "damaged_file",
    "find_plugin",
    "git_pin_name",
    "installed_names",
    "installed_plugins",
    "load_plugin",
    "make_folder",
    "node_count",
    "pinned_commit",
    "pinned_value",
    "plain_text",
    "quoted",
    "read_toml",
    "resolved_word",
    "scrub",
    "state_folder",
    "target_arch",
    "uncounted_limits",
    "write_file",
]
