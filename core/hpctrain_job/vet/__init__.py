"""Vetting: each node of a job is measured alone before anything trains, and those that failed are left out.

`node.py` measures one node, `judgement.py` compares them (pure), `judge.py` writes what follows. No node
waits for another one: what a dead node does not say speaks against it.
"""
