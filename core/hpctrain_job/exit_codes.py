"""How the programs of a job end. What follows an attempt, and what people are told of a step, depends on it.

From 65 to 78 they are those of `sysexits.h`. Scripts write the same numbers: a test compares them.
"""

from __future__ import annotations

NOT_REACHABLE = 6
"""What has to answer does not: as hpctrain's own commands end."""
INTEGRITY = 7
"""Something is not what its record says, or is somebody else's: as hpctrain's own commands end."""
DIFFERS = 65
"""A file is not the one that was planned (EX_DATAERR)."""
DIVERGED = DIFFERS
"""The loss of a training is no number any more."""
ABSENT = 66
"""A file that was planned with is not there (EX_NOINPUT)."""
UNAVAILABLE = 69
"""A server, a port or a program that the step needs (EX_UNAVAILABLE)."""
FAILED = 70
"""The work itself failed, and what it printed says why (EX_SOFTWARE)."""
NOT_STARTED = 71
"""The scheduler's starter failed, and not what it starts (EX_OSERR)."""
NO_ROOM = 73
"""The disk, or a quota, has no room for what is to come (EX_CANTCREAT)."""
NOT_WRITTEN = 74
"""What was made could not be put in its place (EX_IOERR)."""
SAVED = 75
"""A training was told to stop and saved first: another attempt goes on there (EX_TEMPFAIL)."""
NOT_ALLOWED = 77
"""A server refused; or a build step asked for the network, which it never has (EX_NOPERM)."""
CONFIG = 78
"""A setting is wrong, and the same again would end the same way (EX_CONFIG)."""
HUNG = 79
"""The step's watch ended it."""
TOO_FEW_NODES = 80
"""Too few nodes of the job are fit."""
