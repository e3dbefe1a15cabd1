"""The numbers that a reader of our files or a writer of a plugin depends on.

Readers accept every older number; a fixture of each stays in the tests.
"""

DISTRIBUTION = "0.1.0"

HOOK_API = 1
"""The hook API. A plugin's module says which one it was written for: `HPCTRAIN_API = 1`.

It grows when a public name, an argument or a meaning goes away or changes; what is only added leaves it.
"""

OLDEST_HOOK_API = 1
"""The oldest hook API that still works; who says an older one, or a newer than HOOK_API, is refused by name.

What a newer API takes away stays until this number passes the one that had it.
"""

RUN_FILE = 1
"""The run file and `run.lock.toml`."""

RECORD = 1
"""`plan.json` and the events of `record.jsonl`."""

MANIFEST = 1
"""The manifest that lies beside a published artifact."""
