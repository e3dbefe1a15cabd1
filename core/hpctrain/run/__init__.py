"""Whatever touches the world: from a plan to a run, and from a run's directory to what became of it.

`prepared.py` is a plan before it is a run, `live.py` a run that has a directory, `find.py` opens one by its
name; the folders are the parts of both.
"""
