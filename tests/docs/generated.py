"""Pages that are written from the code: the hooks from their docstrings, the run file from its schema."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from hpctrain import command as command_names
from hpctrain import toolbox
from hpctrain.cli.show.classes import arguments, values
from hpctrain.cli.show.tables import cluster_file, type_words
from hpctrain.hooks import specs
from hpctrain.hooks.load import find, load
from hpctrain.hooks.manager import NO_WRAPPERS
from hpctrain.hooks.scan import names
from hpctrain.runfile.chosen import TECHNOLOGIES
from hpctrain.runfile.schema import run_schema
from hpctrain.versions import HOOK_API, OLDEST_HOOK_API
from hpctrain_plugins.trainers import command
from tests.docs import parts, troubleshooting
from tests.docs.markdown import section_lines

MADE = """<!-- written from the code: pytest tests/docs --update-golden -->

To follow this page: `pip install --find-links dist 'hpctrain[all]'` ([install](../README.md#install))."""

PRIORITY = "(who is asked first)"
SUPPORTED = str(HOOK_API) if OLDEST_HOOK_API == HOOK_API else f"{OLDEST_HOOK_API} to {HOOK_API}"

HOOKS = f"""# Hooks
{MADE}

A plugin is a module with `HPCTRAIN_API = 1` and functions marked `@hookimpl`. A hook may take fewer
arguments than it is offered; a misspelt hook or argument is an error that names the plugin. **Pure** hooks
return data and touch nothing, so a plan is the same on every machine; **acting** hooks start programs through
`tools` alone.

Who is asked first, and who then:

{PRIORITY}

For a hook that has one answer, the first plugin that does not return None wins; where every answer counts,
all are asked. `HPCTRAIN_TRACE=1` prints each call.

Values are imported from one place, `from hpctrain.plugin import hookimpl, Layer, EnvVar, Cmd`; what they mean
and where they end up is described in [values.md](values.md), functions in [toolbox.md](toolbox.md). Each
example runs, on a small run.
`hpctrain help launch` prints what is here of one hook.

**Versions.** `HPCTRAIN_API` is the hook API that a plugin was written for; this hpctrain takes {SUPPORTED}.
What is only added (a hook, an argument that a hook is offered, a field with a default, a name) leaves the
number. What could break a plugin raises it, and the old way stays beside the new until the next minor release
at least: meanwhile a plugin of the older number works, and plans with it have one warning that names its
distribution. CHANGELOG.md says under "API" what changed.
"""

RUN_FILE = f"""# The run file
{MADE}

TOML, read strictly: an unknown key, a wrong type or a bare number where a duration is needed is an error
with its line and the text to paste. `hpctrain init run` writes a file to start from; `hpctrain schema` prints
all of this as JSON schema. The first line of that file leads editors with a TOML language server (taplo) to
it. Only keys that say **needed** must be there.

```toml run=local
name    = "my-run"
cluster = "local"

[resources]
time = "1h"

[environment]
packages = ["trl==0.23.1", {{ git = "https://example.org/mylib", rev = "v1.2", name = "mylib" }}]

[assets]
model   = {{ hub = "Qwen/Qwen3-0.6B" }}
dataset = {{ url = "https://example.org/train.jsonl", sha256 = "{"0" * 64}" }}

[train]
use = "trl"

[checkpoint]
every = "30m"

[on.alps.resources]
gpus = 4
```

Relative paths count from the folder of the file that says them. Which layer wins is said in
[layers-and-settings.md](layers-and-settings.md).
"""


CLUSTER_FILE = f"""# The cluster file
{MADE}

`cluster.toml` stands beside the plugin's module and is read strictly, as a run file is: an unknown key or a
wrong type is an error with its line. A site's file and `[cluster.NAME]` in settings are laid over it
([layers-and-settings.md](layers-and-settings.md)). [writing-a-cluster.md](writing-a-cluster.md)
writes one from nothing; `hpctrain help place` prints one table of this page. A row of a list looks like this:

```toml facts=alps
[[place]]
name     = "transfer"
source   = "told"
here     = false
provides = ["network"]
queue    = "xfer"
ask      = {{ slurm = ["--ntasks=1"] }}

[[queue]]
name     = "xfer"
source   = "told"
ask      = {{ slurm = ["--partition=xfer"] }}
max_time = "1d"
auto     = false

[[source]]
id      = "told"
title   = "told by the help desk"
checked = "2026-11-20"
sure    = "inferred"
```

Where a meaning names an option of Slurm, that is what its plugin makes of the fact; another scheduler
writes its own words.
"""

VALUES = f"""# Values
{MADE}

What hooks take and return. All are frozen: make another with `attrs.evolve`. They come from one place:

```python
from hpctrain.plugin import Cmd, EnvVar, Layer, Loc, Scope, Var

cache = Loc("runs", "cache")
layer = Layer(
    env=(EnvVar(name="MY_CACHE", value=cache, at=Scope.NODE, why="the home folder is full"),),
    node=(Cmd.of("mkdir", "-p", cache),),
)
```

A **word** (`Word`) is a `str`, `Var`, `Loc`, `Secret`, `Raw` or `Join` of these: what is not plain text
is bound late and becomes bash in one place, quoted there. A **line** (`Line`) is a `Cmd` or a `Raw`. `Asks`
maps a scheduler's name to words. `template("/tmp/${{USER}}")` makes a word of text with variables.

The scripts of a step: `job.sh` is what the scheduler starts; it starts `node.sh` once on each node and
`rank.sh` once per rank, both outside the environment; `rank.sh` enters the environment and starts
`task.sh`, which runs the commands. `hpctrain help Layer` prints one section of this page.

What the fields of a `RunSpec` hold is said with their keys in [run-file.md](run-file.md), those of a
`Cluster` and of its `Place`, `Queue` and `Storage` in [cluster-file.md](cluster-file.md).
"""


def hooks_page() -> str:
    """docs/hooks.md."""
    found = [(name, hook) for name, hook in vars(specs).items() if hasattr(hook, "hpctrain_spec")]
    head = HOOKS.replace(PRIORITY, parts.priority())
    return "\n".join([head, *(part for name, hook in found for part in _hook(name, hook))])


def _hook(name: str, hook: Any) -> Iterator[str]:
    text, _, rest = (inspect.getdoc(hook) or "").partition("Example::\n")
    example, _, since = rest.partition("Since:")
    title, _, body = text.strip().partition("\n\n")
    yield f"## {name}\n\n{title}\n"
    signature = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(hook)))
    yield f"```text\n{name}{signature}\n```\n"
    if body:
        yield f"{body}\n"
    answers = "first answer wins" if hook.hpctrain_spec["firstresult"] else "every answer counts"
    wraps = "cannot be wrapped" if name in NO_WRAPPERS else "may be wrapped"
    yield f"*{answers}; {wraps}; since {since.strip()}*\n"
    yield f"```python hook\n{textwrap.dedent(example).strip()}\n```\n"


def run_file_page() -> str:
    """docs/run-file.md."""
    schema = run_schema(_options())
    tables = schema["properties"]
    plain = {k: v for k, v in tables.items() if "properties" not in v and k not in ("on", "assets")}
    seen: set[str] = set()
    parts = [RUN_FILE, "## Keys at the top\n", *_rows(plain, schema["required"])]
    for key, table in tables.items():
        if key == "assets":
            parts += _table("[assets.NAME]", table["additionalProperties"])
        elif "properties" in table:
            parts += _table(f"[{key}]", table)
            for name, inner in _inner(table):
                parts += _table(f"[{key}.{name}]", inner)
                parts += _places() if name == "command" else ()
                parts += _deeper(f"{key}.{name}", inner, seen)
    package = tables["environment"]["properties"]["packages"]["items"]["anyOf"][1]
    parts += _table("A package", package)
    parts += ["## [on.CLUSTER]\n", "Any of these keys, for one cluster only.\n"]
    return "\n".join(parts).rstrip() + "\n"


def _options() -> dict[tuple[str, str], type]:
    """Those of our own technologies; what else is installed here is not on the page."""
    found = {}
    for table, plural in TECHNOLOGIES.items():
        for name in names(plural):
            module = load(find(plural, name))
            if hasattr(module, "Options") and module.__name__.startswith("hpctrain_plugins."):
                found[table, name] = module.Options
    return found


def _inner(table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, row) for name, row in table["properties"].items() if "properties" in row)


def _places() -> Iterator[str]:
    yield "| in `argv` | becomes |"
    yield "|---|---|"
    yield from (f"| `{{{name}}}` | {says[:1].upper()}{says[1:]}. |" for name, says in command.PLACES.items())
    yield "\nOther braces stay as they are.\n"


def _deeper(title: str, table: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """Tables in an option, and tables by names of the user's own; of technologies that share them, once."""
    for name, row in table["properties"].items():
        named = row.get("additionalProperties")
        by_name = isinstance(named, Mapping) and "properties" in named
        found = named if by_name else row
        said = str(found)
        if "properties" in found and said not in seen:
            seen.add(said)
            yield from _table(f"[{title}.{name}{'.NAME' if by_name else ''}]", found)


def _table(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{table['description']}\n"
    if "oneOf" in table:
        keys = [row["required"][0] for row in table["oneOf"]]
        yield f"One of {', '.join(f'`{key}`' for key in keys)} is needed.\n"
    plain = {name: row for name, row in table["properties"].items() if "properties" not in row}
    yield from _rows(plain, table.get("required", ()))


def _rows(rows: Mapping[str, Any], needed: Any) -> Iterator[str]:
    yield "| key | type | meaning |"
    yield "|---|---|---|"
    for name, row in rows.items():
        said = row.get("description", "").replace("|", "\\|")
        default = f" Default: `{row['default']}`." if row.get("default") not in (None, 0, False) else ""
        need = " **Needed.**" if name in needed else ""
        yield f"| `{name}` | {type_words(row)} | {said[:1].upper()}{said[1:].rstrip('.')}.{default}{need} |"
    yield ""


def cluster_file_page() -> str:
    """docs/cluster-file.md."""
    return _page(CLUSTER_FILE, (part for section in cluster_file() for part in section_lines(section, "##")))


def values_page() -> str:
    """docs/values.md."""
    parts = [VALUES]
    for heading, sections in values().items():
        parts += [
            f"## {heading}\n",
            *(part for section in sections for part in section_lines(section, "###")),
        ]
    return _page(*parts)


def _page(head: str, *parts: Any) -> str:
    flat = [head, *(p for part in parts for p in ([part] if isinstance(part, str) else part))]
    return "\n".join(flat).rstrip() + "\n"


TOOLBOX = f"""# Functions for plugins
{MADE}

Beside the values of [values.md](values.md), which come from `hpctrain.plugin`, plugins use a few functions of
core. Ours are written with these names alone; a test forbids any other import.

```python
from hpctrain.toolbox import pinned_value, target_arch
```

"""

COMMAND_NAMES = """## For commands

A command is an entry point in the group `hpctrain.commands`, a click command that is imported when it is
called. What it prints, opens and draws comes from `hpctrain.command`.

"""


def toolbox_page() -> str:
    return f"{TOOLBOX}{_names_of(toolbox)}\n{COMMAND_NAMES}{_names_of(command_names)}"


def _names_of(module: ModuleType) -> str:
    values = ((name, getattr(module, name)) for name in module.__all__)
    rows = (f"| `{name}{_called(value)}` | {_first_line(value)} |\n" for name, value in values)
    return "| name | meaning |\n|---|---|\n" + "".join(rows)


def _called(value: object) -> str:
    """The arguments of a function."""
    return arguments(value).replace("|", "\\|") if inspect.isroutine(value) else ""


def _first_line(value: object) -> str:
    """What its docstring says first."""
    documented = inspect.isroutine(value) or inspect.isclass(value)
    text = (inspect.getdoc(value) or "").partition("\n")[0] if documented else "a constant"
    return text.replace("|", "\\|")


def troubleshooting_page() -> str:
    """docs/troubleshooting.md."""
    return troubleshooting.page(MADE)


PAGES = {
    "toolbox.md": toolbox_page,
    "cluster-file.md": cluster_file_page,
    "hooks.md": hooks_page,
    "run-file.md": run_file_page,
    "values.md": values_page,
    "troubleshooting.md": troubleshooting_page,
}
