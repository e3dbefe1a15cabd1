"""`logs` by rank, by node and over attempts; logs of any size."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.e2e.product import Product, small

MEMORY, CPU_SECONDS = 300 << 20, 60
"""Address space of the whole command, where the log has a gigabyte; and CPU time on a slow computer."""


def placed(rank: int, node: str, attempt: int) -> str:
    """As rank.sh writes it."""
    return f"hpctrain: rank {rank} on {node}, job {7 + attempt}, attempt {attempt}\n"


@pytest.fixture
def logs(here: Product) -> Path:
    """A run of two ranks on two nodes and two attempts; in the second, rank 1 ran where rank 0 had been."""
    here.write(small("true"))
    here("submit", "--wait")
    folder = here.run_path("small/1") / "logs"
    sizes = []
    for rank, (first, second) in enumerate((("n1.site", "n2.site"), ("n2.site", "n1.site"))):
        early = placed(rank, first, 0) + f"first {rank}\n"
        (folder / f"train.rank{rank}.log").write_text(early + placed(rank, second, 1) + f"second {rank}\n")
        sizes.append(f"{len(early)} train.rank{rank}.log\n")
    (folder.parent / "steps/train/log-sizes").write_text("".join(sizes))
    return folder


def printed(here: Product, *args: str) -> list[str]:
    return [line for line in here("logs", "small/1", *args).stdout.splitlines() if "hpctrain:" not in line]


def test_the_ranks_of_a_node(here: Product, logs: Path) -> None:
    assert printed(here, "--rank", "1", "-n", "1") == ["second 1"]
    assert printed(here, "--rank", "1", "--all") == ["first 1", "second 1"]
    assert printed(here, "--node", "n1") == ["second 1"]
    assert printed(here, "--node", "n1.site", "--all") == [
        "==> train.rank0.log <==", "first 0", "==> train.rank1.log <==", "second 1",
    ]  # fmt: skip
    refused = here("logs", "small/1", "--node", "n3", code=2).stderr
    assert "no rank of train of small/1 ran on n3" in refused
    assert "nodes: n1.site n2.site" in refused


@pytest.mark.parametrize("args", [("-f", "--all"), ("-f", "--node", "n1"), ("--node", "n1", "--rank", "1")])
def test_what_cannot_be_asked_together_is_refused(here: Product, args: tuple[str, ...]) -> None:
    assert "error[usage]" in here("logs", *args, code=2).stderr


def test_a_step_of_one_rank_has_no_logs_by_node(here: Product) -> None:
    here.write(small("echo x"))
    here("submit", "--wait")
    refused = here("logs", "--node", "n1", code=2).stderr
    assert "its ranks have no logs of their own" in refused
    assert printed(here, "--all") == ["x"]


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def bounded(here: Product, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        here.argv("logs", "small/1", *args), env=here.environment, cwd=here.folder, capture_output=True,
        check=True, timeout=600, preexec_fn=limited,
    )  # fmt: skip


@pytest.mark.parametrize("args", [(), ("--all",)])
def test_a_line_of_a_gigabyte_and_a_million_lines_stay_bounded(here: Product, args: tuple[str, ...]) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    log = here.run_path("small/1") / "logs/train.log"
    with log.open("wb") as file:
        file.truncate(1 << 30)  # it takes no room on the disk
        file.seek(0, 2)
        file.write(b"the end\n")
    shown = bounded(here, *args).stdout
    assert shown.endswith(b"the end\n")
    assert len(shown) < 16 << 20
    log.write_text("".join(f"\x1b[31mline {number}\x1b[0m\n" for number in range(1_000_000)))
    shown = bounded(here, *args).stdout
    assert shown.endswith(b"line 999999\n")
    assert b"\x1b" not in shown
    assert shown.count(b"\n") == (1_000_000 if args else 40)
