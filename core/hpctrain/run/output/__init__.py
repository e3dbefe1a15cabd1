"""What the programs of a run wrote: logs, and the metrics in them."""
