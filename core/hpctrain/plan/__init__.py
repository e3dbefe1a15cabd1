"""Pure: from a run, a cluster and pins to a plan; the same on every machine."""
