"""Pages that are written from the code: the hooks from their docstrings, the run file from its schema."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.cli.reference import Section, cluster_file, kind_of, values
from hpctrain.hooks import specs
from hpctrain.hooks.load import find, load
from hpctrain.hooks.manager import NO_WRAPPERS
from hpctrain.hooks.scan import names
from hpctrain.runfile.schema import run_schema
from hpctrain.session import TECHNOLOGIES
from hpctrain_plugins.trainers import command

MADE = "<!-- written from the code: pytest tests/docs --update-golden -->"

HOOKS = f"""# Hooks
{MADE}

A plugin is a module with `HPCTRAIN_API = 1` and functions marked `@hookimpl`. A hook may take fewer
arguments than it is offered; a misspelt hook or argument is an error that names the plugin. **Pure** hooks
return data and touch nothing, so a plan is the same on every machine; **acting** hooks start programs through
`tools` alone.

Who is asked first: hooks of the run (`Session(extra=…)`, `[hooks] file`), installed site hooks, the cluster,
the environment, the trainer, the scheduler, core. For a hook that has one answer, the first plugin that does
not return None wins; where every answer counts, all are asked. `HPCTRAIN_TRACE=1` prints each call.

Everything is imported from one place, `from hpctrain.plugin import hookimpl, Layer, EnvVar, Cmd`; what the
values mean and where they end up is said in [values.md](values.md). Each example runs, on a small run.
`hpctrain help launch` prints what is here of one hook.
"""

RUN_FILE = f"""# The run file
{MADE}

TOML, read strictly: an unknown key, a wrong type or a bare number where a duration is needed is an error
with its line and the text to paste. `hpctrain init run` writes a file to start from; `hpctrain schema` prints
all of this as JSON schema for an editor. Only keys that say **needed** must be there.

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
from hpctrain.plugin import At, Cmd, EnvVar, Layer, Loc, Var

cache = Loc("runs", "cache")
layer = Layer(
    env=(EnvVar(name="MY_CACHE", value=cache, at=At.NODE, why="the home folder is full"),),
    node=(Cmd.of("mkdir", "-p", cache),),
)
```

A **word** (`Word`) is a `str`, `Var`, `Loc`, `Secret`, `Raw` or `Join` of these: what is not plain text
is bound late and becomes bash in one place, quoted there. A **line** (`Line`) is a `Cmd` or a `Raw`. `Asks`
maps a scheduler's name to words. `template("/tmp/${{USER}}")` makes a word of text with variables.

The scripts of a step: `job.sh` is what the scheduler starts; it starts `node.sh` once on each node and
`rank.sh` once per rank, both outside the environment; `rank.sh` enters the environment and starts
`task.sh`, which runs the commands. `hpctrain help Layer` prints one section of this page.

What the fields of a `RunSpec` and of a `Cluster` hold is said with their keys in [run-file.md](run-file.md)
and [cluster-file.md](cluster-file.md).
"""


def hooks_page() -> str:
    """docs/hooks.md."""
    found = [(name, hook) for name, hook in vars(specs).items() if hasattr(hook, "hpctrain_spec")]
    return "\n".join([HOOKS, *(part for name, hook in found for part in _hook(name, hook))])


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
        yield f"| `{name}` | {kind_of(row)} | {said[:1].upper()}{said[1:].rstrip('.')}.{default}{need} |"
    yield ""


def cluster_file_page() -> str:
    """docs/cluster-file.md."""
    return _page(CLUSTER_FILE, (part for section in cluster_file() for part in _section(section, "##")))


def values_page() -> str:
    """docs/values.md."""
    parts = [VALUES]
    for heading, sections in values().items():
        parts += [f"## {heading}\n", *(part for section in sections for part in _section(section, "###"))]
    return _page(*parts)


def _page(head: str, *parts: Any) -> str:
    flat = [head, *(p for part in parts for p in ([part] if isinstance(part, str) else part))]
    return "\n".join(flat).rstrip() + "\n"


def _section(section: Section, level: str) -> Iterator[str]:
    yield f"{level} {section.title[:1].upper()}{section.title[1:]}\n"
    yield f"{section.says}\n"
    kinds = any(row.kind for row in section.rows)
    yield "| name | type | meaning |" if kinds else "| name | meaning |"
    yield "|---|---|---|" if kinds else "|---|---|"
    for row in section.rows:
        default = f" Default: `{row.default}`." if row.default else ""
        need = " **Needed.**" if row.needed else ""
        kind = f" {_cell(row.kind)} |" if kinds else ""
        yield f"| `{row.name}` |{kind} {_cell(row.says)}{default}{need} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {
    "cluster-file.md": cluster_file_page,
    "hooks.md": hooks_page,
    "run-file.md": run_file_page,
    "values.md": values_page,
}
