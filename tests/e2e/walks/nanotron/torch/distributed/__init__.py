"""Stand-in: only `run`."""
