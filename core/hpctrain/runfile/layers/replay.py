"""`[replay]` of the lock in a run's directory: what was asked beside the run file, and what became of it.

```toml
[replay]
folder  = "/home/ada/project"          # that of the run file
digest  = "4f1c…"                      # the plan's
plugins = ["trainers:trl (hpctrain-plugins 0.1.0)"]
[replay.files]
code = "9b1e…"                         # each file of the run, and the hash of its content
[replay.settings]
resources.time = "7m"                  # the settings' layer, below the run file
[replay.set]
env.A = "2"                            # `--set` and `--on`, over it
```
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.run import BY_CORE
from hpctrain.runfile.faults import shown_as
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.judging.tokens import check_no_tokens, check_texts
from hpctrain.runfile.keys import Keys, dotted, quoted
from hpctrain.runfile.layers.layers import Merged, Tier, merge
from hpctrain.runfile.layers.settings import PERSONAL
from hpctrain.runfile.reading.find import is_run_directory
from hpctrain.runfile.reading.text import Document

if TYPE_CHECKING:
    from hpctrain.model.plan import Plan

TABLE = "replay"
MARK = "# ---- what this run was asked beside the file above, and what became of it ----"
_ANEW = ("--set", "--on")


@frozen(kw_only=True)
class Replay:
    """The table."""

    folder: str = ""
    """The run file's, from which its relative paths counted; the lock's own where nothing is said."""
    digest: str = ""
    """The plan's; nothing where only a part of the run was planned."""
    plugins: tuple[str, ...] = ()
    """Those that planned it, with their versions."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    """Each file of the run as it is written -> the hash of its content."""
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys below those of the run file."""
    set: Mapping[str, Any] = attrs.field(factory=dict)
    """Keys over those of the run file."""
    document: Document = attrs.field(default=Document("", "", {}), metadata=BY_CORE)
    """The file that has the table."""

    def base(self, path: Path) -> Path:
        """The folder from which relative paths of the file at `path` count.

        A copy is a run file like any other: its own folder, unless one of the files is not there. That `.` is
        there says nothing. The run's directory never is that folder: what lies in it is named as in projects,
        `code` above all.
        """
        beside, recorded = path.parent, path.parent / self.folder
        if is_run_directory(beside):
            return recorded
        relative = (name for name in self.files if not name.startswith(("/", "~")))
        is_whole = all(Path(name) != Path() and os.path.exists(beside / name) for name in relative)  # noqa: PTH110
        return beside if is_whole or not os.path.isdir(recorded) else recorded  # noqa: PTH112  (likewise)

    def tier(self, key: str) -> Tier:
        """The keys of `settings` or of `set` as a layer."""
        return Tier(name=TABLE, data=getattr(self, key), document=self.document, prefix=(TABLE, key))

    @property
    def text(self) -> str:
        """The table as it stands in a lock."""
        lines = [MARK, "", f"[{TABLE}]", f"folder = {written(self.folder)}"]
        lines += [f"digest = {written(self.digest)}"] if self.digest else []
        lines += [f"plugins = {written(list(self.plugins))}"]
        for name, keys in (("files", self.files), ("settings", self.settings), ("set", self.set)):
            rows = [f"{dotted(path)} = {written(value)}" for path, value in _leaves(keys, ())]
            lines += ["", f"[{TABLE}.{name}]", *rows] if rows else []
        return "\n".join(lines)


def read(document: Document) -> Replay:
    """The table of this file; ConfigError says all that is wrong with it."""
    replay, faults = Strict()(document.data[TABLE], Replay)
    if replay is None:
        raise ConfigError(
            *(f.under(TABLE).problem(document.span((TABLE, *f.path), key=f.at_key)) for f in faults)
        )
    return attrs.evolve(replay, document=document)


def recorded_keys(tiers: Iterable[Tier], merged: Merged) -> dict[str, Any]:
    """The keys of these layers, all that they say of a run: not for whom it is, which policy it keeps within,
    or what looks like a token and did not count."""
    data = merge(tiers).data
    in_force = dict(_leaves(merged.data, ()))
    tokens = _tokens(data)
    result: dict[str, Any] = {}
    for path, value in _leaves(data, ()):
        is_token = any(token[: len(path)] == path for token in tokens)
        if path[0] == "policy" or path in PERSONAL or (is_token and in_force.get(path) != value):
            continue
        table = result
        for key in path[:-1]:
            table = table.setdefault(str(key), {})
        table[str(path[-1])] = value
    return result


def _tokens(data: Mapping[str, Any]) -> list[Keys]:
    """Where something looks like a token."""
    env = data.get("env")
    variables = {k: v for k, v in env.items() if isinstance(v, str)} if isinstance(env, dict) else {}
    in_env = [("env", *fault.path) for fault in check_no_tokens(variables)]
    return [*in_env, *(fault.path for fault in check_texts(data))]


def without_table(text: str) -> str:
    """The text of a run file without the table, if it has one."""
    lines, is_ours = [], False
    for line in text.split("\n"):
        if line.startswith("["):
            is_ours = line.startswith((f"[{TABLE}]", f"[{TABLE}."))
        if not is_ours and line != MARK:
            lines.append(line)
    return "\n".join(lines).rstrip()


def differences(replay: Replay, merged: Merged, contents: Mapping[str, str], plan: Plan) -> Iterator[Problem]:
    """A warning for each reason why the plan is not the recorded one, where the same was asked."""
    anew = (path for path, tier in merged.owners.items() if tier.name in _ANEW and path not in PERSONAL)
    if not replay.digest or plan.digest == replay.digest or any(anew):
        return
    changed = [name for name, content in replay.files.items() if contents.get(name, content) != content]
    for name in changed:
        message = f"{name} is not what it was when this run was recorded"
        yield _differs(message, (TABLE, "files", name), replay.document)
    if not changed:
        gone = [plugin for plugin in replay.plugins if plugin not in plan.plugins]
        others = f"keys or pins of this file, or facts of {plan.cluster.name}, are others"
        reason = f"not here: {', '.join(gone)}" if gone else others
        message = f"the plan is {plan.digest[:8]}, and {replay.digest[:8]} was recorded: {reason}"
        yield _differs(message, (TABLE, "digest"), replay.document)


def _differs(message: str, path: Keys, document: Document) -> Problem:
    return Problem(
        code="replay-differs", message=message, where=dotted(path), span=document.span(path), fatal=False
    )


def _leaves(table: Mapping[str, Any], path: Keys) -> Iterator[tuple[Keys, Any]]:
    """In the order in which they are said: that of variables is the order in scripts."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def written(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(key)} = {written(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return shown_as(value)
