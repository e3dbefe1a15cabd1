"""Spare nodes: how a training goes on inside its allocation when a node or a rank of it dies.

The job asks for more nodes than train. On each node runs one guard (`guard.py`), which starts the ranks of
its node itself: it forks `rank.sh`, because a new step of the scheduler may be impossible once the first
node is dead, or wait for minutes until the scheduler knows of a dead node. There is no server, and no
guard is special: **the first node of the allocation that still beats leads**, the job's first node as a
rule.

They talk through one folder of the run (`board.py`):

    nodes           the nodes of the allocation, in their order, without those that were vetted out
    beat.NODE       once a second: a count, which order this node follows, and how its ranks are
    order           what all do, by the leader: attempt 3 runs on these nodes; it halts; all is over
    claim.N         who made it may order attempt N: of two leaders only one does
    signal          a signal that job.sh heard and the ranks shall hear
    over            how it ended: the exit code, then the nodes that failed
    closing         somebody ends the job: job.sh, or the leader where that is dead

A node is silent when its count has not moved for `Terms.silent` looks of another guard. Counts, not times:
clocks may differ. Looks, not seconds: who was himself held up, by a loaded node or a file system that stood
still, has not looked. From what it sees the leader (`leader.py`) takes one step (`judgement.py`, pure): go
on, halt, over, or, when everybody has halted, begin again. Whether and where it begins again is decided by
`chain/decision.py` alone (`ends.py` asks); where that says no, the job ends as any other does, and the
chain's next job goes on.

With the first node its job.sh is gone, too: then the leader tells the ranks to save before the time limit,
and closes the job in its place.

The fence: every attempt has a number, which grows. A guard that sees a higher one than its ranks have kills
them before all else; a guard's death kills its ranks (the kernel does that); and who publishes a checkpoint
through `hpctrain_job.resume.write_manifest` is refused once a later attempt was ordered
(`hpctrain_job/fence.py`).
"""
