"""This computer, as a cluster of one node: the same steps, scripts and states without a queue."""

HPCTRAIN_API = 1
