"""docs/troubleshooting.md: the rules of `diagnose`, each with what a real program printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpctrain.hooks.load import find, load
from hpctrain.hooks.scan import names
from hpctrain.model.job import Rule
from hpctrain.run.diagnosis.failures import TABLE, rules
from hpctrain.runfile.reading.toml import loads
from tests.house.sources import ROOT

HEAD = """# When a run fails
{made}

`hpctrain submit --wait` ends with the cause of a failure and its cure. `hpctrain diagnose RUN` says more:
where the line stands, which rule knows it, an address. It reads any other log too, with `--on CLUSTER` and
`--trainer NAME` where you know them:

```console
$ echo "slurmstepd: error: Detected 1 oom_kill event in StepId=4.0." | hpctrain diagnose -
cause     certain: the job used more memory on a node than it asked for, and its processes were killed
…
rule      job-memory, from core
```

| said first | means |
|---|---|
| `certain` | The line says it. |
| `likely` | The line usually means it. |
| `consequence` | Another rank failed first, and its log says nothing that is known. |
| `guess` | All that an exit code tells, where no program printed an error of its own. |
| `unknown` | No rule knows it. What the rank that failed first ended with is shown, and what came before. |

Where the cause is `unknown`, the line shown is what to search for. Whoever knows the cure can make it a rule
for everybody: [the hook](hooks.md#diagnose_rules), in a plugin or in [a site's own file](site-hooks.md).
"""

CASES = ROOT / "tests/run/failures.toml"
WIDEST = 110
OF = {"clusters": "On", "trainers": "With the trainer", "environments": "In"}
"""Kinds of plugins whose rules are listed, as a heading begins."""
OURS = ("hpctrain_plugins.", "hpc_")


def page(made: str) -> str:
    """The page, below the line that says how it is made."""
    return HEAD.replace("{made}", made) + "\n".join((*_core(), *_plugins())).rstrip() + "\n"


def _core() -> Iterator[str]:
    rows = {row["name"]: row for row in loads(TABLE.read_text())["rule"]}
    logs: dict[str, str] = {}
    for case in loads(CASES.read_text())["case"]:
        logs.setdefault(case["rule"], _telling(case["log"], case["rule"]))
    for about in dict.fromkeys(row["about"] for row in rows.values()):
        yield f"\n## {about[:1].upper()}{about[1:]}\n"
        yield "| in the log | cause | what to do |\n|---|---|---|"
        for rule in rules():
            row = rows[rule.name]
            if row["about"] == about:
                evidence = _ending(row) or f"`{logs[rule.name]}`"
                yield f"| {evidence} | [{_cell(rule.cause)}]({rule.page}) | {_cell(rule.fix)} |"


def _telling(log: str, name: str) -> str:
    """The line of a log that its rule knows, as much as a table holds."""
    pattern = next(rule.pattern for rule in rules() if rule.name == name)
    match = re.search(pattern, log, re.MULTILINE)
    assert match is not None, name
    begin = log.rfind("\n", 0, match.start()) + 1
    line = log[begin:].partition("\n")[0]
    left = max(0, min(match.start() - begin - 20, len(line) - WIDEST))
    part = line[left : left + WIDEST].strip()
    return _cell(("…" if left else "") + part + ("…" if left + WIDEST < len(line) else "")).replace("`", "'")


def _ending(row: Mapping[str, Any]) -> str:
    """How a process ended, for the rules that know it."""
    if "signal" in row:
        return f"exit code {128 + row['signal']}, `{row['words']}`"
    return f"exit code {row['exit']}" if "exit" in row else ""


def _plugins() -> Iterator[str]:
    for kind, begin in OF.items():
        for name in names(kind):
            module = load(find(kind, name))
            found = getattr(module, "diagnose_rules", None)
            if found is not None and module.__name__.startswith(OURS):
                yield f"\n## {begin} {name}\n"
                yield from _table(found())


def _table(known: Iterable[Rule]) -> Iterator[str]:
    yield "| rule | cause | what to do |\n|---|---|---|"
    yield from (f"| {rule.name} | {_cell(rule.cause)} | {_cell(rule.fix)} |" for rule in known)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>").replace("<br><br>", "<br>")
