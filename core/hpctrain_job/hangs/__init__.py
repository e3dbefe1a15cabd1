"""Who hangs: what each rank wrote and what its node saw of it become a name, or nobody's.

No daemon, no root, no change of the trainer. `pulse` runs in a rank, `watch` once on each node;
`judgement` is pure.
"""
