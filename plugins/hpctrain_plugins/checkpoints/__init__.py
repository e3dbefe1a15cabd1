"""Checkpoints from any format to any other, without torch and without trust.

`convert.convert` is the one function; each format is a module with `detect`, `read` and `plan`.
Readers say where every tensor's bytes lie, writers say where they go, one engine copies them.
"""
