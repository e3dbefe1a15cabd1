"""From a dataset to the files a trainer reads; runs in a job or on a login node, knows no control plane."""

from __future__ import annotations

FORMAT = 2
"""Of the shards in a work folder; a change here means that unfinished work is not continued."""
