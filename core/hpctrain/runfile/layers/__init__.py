"""Layers of keys, one over the other: where each comes from, and who wins."""
