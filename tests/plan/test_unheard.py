"""Words for a scheduler that the cluster does not have are told: its jobs would go without them."""

from __future__ import annotations

from pathlib import Path

from hpctrain.session import Session

RUN = """
name = "small"
cluster = "alps"
[resources]
nodes = 1
time = "10m"
account = "g1"
[environment.ready]
prefix = "/env"
[train]
use = "command"
[train.command]
argv = ["true"]
"""
QUEUE = """
[[source]]
id = "mine"
title = "A test"
checked = "2026-11-20"
[[queue]]
name = "quick"
source = "mine"
ask = {ask}
"""


def warnings(folder: Path, ask: str) -> list[tuple[str, str, bool]]:
    """What a plan says about the words of a queue that the site's own file adds."""
    (folder / "run.toml").write_text(RUN)
    (folder / "alps.toml").write_text(QUEUE.format(ask=ask))
    environ = {"HOME": str(folder), "HPCTRAIN_SITE": str(folder)}
    problems = Session(folder / "run.toml", environ=environ).plan().problems
    return [(p.message, p.hint, p.fatal) for p in problems if p.where == "queue.quick.ask"]


def test_words_for_a_scheduler_that_is_not_there_are_told(tmp_path: Path) -> None:
    message = "alps speaks slurm, and queue.quick.ask has words for pbspro alone: its jobs go without them"
    hint = 'ask = { slurm = ["-q debug"] }'
    assert warnings(tmp_path, '{ pbspro = ["-q debug"] }') == [(message, hint, False)]


def test_words_for_the_cluster_s_own_scheduler_and_one_more_are_none(tmp_path: Path) -> None:
    assert warnings(tmp_path, '{ slurm = ["--qos=quick"], pbspro = ["-q debug"] }') == []
