"""From the checkpoints of an experiment to revisions of a model on the hub."""
