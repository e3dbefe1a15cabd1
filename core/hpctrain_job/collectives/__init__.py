"""Collectives between processes, their values checked: of torch where it is there, else a ring of sockets.

`measured.py` is what others call; `group.py` (torch) and `ring.py` (the standard library) are its engines.
"""
