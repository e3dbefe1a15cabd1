"""Vetting: the nodes of a job are measured before anything trains, and those that failed are left out.

Each one alone first: `node.py` measures it, `judgement.py` compares them (pure). No node waits for another:
what a dead node does not say speaks against it. Then the fit ones in pairs (`partners.py`), inside the
environment: `sweep.py` measures, `together.py` compares (pure). `judge.py` writes what follows.
"""
