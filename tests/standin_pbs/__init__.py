"""A stand-in for an OpenPBS server, for tests: not PBS, and no part of any distribution.

No registry has a PBS server, so whole runs go through this: commands of the names qsub, qstat, qselect, qdel,
qhold, qrls and qrerun that share one file of state, two nodes that are processes of this computer, and an
mpiexec. What it answers, and when, was copied from the recordings of a real OpenPBS 23.06
(`tests/schedulers/openpbs/`); what those do not show it cannot do. A new state follows from a call or from
the end of a job: there is no server process.
"""
