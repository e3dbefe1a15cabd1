"""The four numbers that a reader of our files or a writer of a plugin depends on.

Readers accept every older number; a fixture of each stays in the tests.
"""

DISTRIBUTION = "0.1.0"

HOOK_API = 1
"""The hook API. A plugin module says `HPCTRAIN_API = 1`; another number is refused by name."""

RUN_FILE = 1
"""The run file and `run.lock.toml`."""

RECORD = 1
"""`plan.json` and the events of `record.jsonl`."""

MANIFEST = 1
"""The manifest that lies beside a published artefact."""
