"""Collectives between real processes, of gloo and of sockets; their values are checked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from hpctrain_job.collectives import ring
from hpctrain_job.collectives.measured import gigabytes_per_second
from hpctrain_job.collectives.place import Place
from tests.conftest import ROOT, needs
from tests.patience import PATIENCE, within


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def together(python: str, world: int, missing: int = 0) -> list[dict[str, Any]]:
    """What each of so many processes measured, where some never come."""
    base = {
        "HPC_WORLD": str(world),
        "HPC_HEAD": "127.0.0.1",
        "HPC_PORT": str(port()),
        "PATH": os.environ["PATH"],
    }
    base |= {"PYTHONPATH": str(ROOT / "core"), "GLOO_SOCKET_IFNAME": "lo", "HPC_PATIENCE": "5"}
    argv = (python, "-m", "hpctrain_job.collectives.measured")
    processes = [
        subprocess.Popen(argv, env={**base, "HPC_RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(world - missing)
    ]
    return [json.loads(process.communicate(timeout=90)[0].splitlines()[-1]) for process in processes]


@pytest.mark.parametrize("world", [2, 3, 5])
def test_sockets_reduce_to_what_all_of_them_sent(world: int) -> None:
    for row in together(sys.executable, world):
        assert row["engine"] == "sockets", row
        assert {one["bytes"] for one in row["operations"].values()} == set(ring.SIZES)
        assert all(one["right"] for one in row["operations"].values())
        assert gigabytes_per_second(row["operations"][f"all_reduce {ring.SIZES[-1]}"], world) > 0


@pytest.mark.torch
def test_gloo_has_four_collectives_with_right_values() -> None:
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    for row in together(python, 3):
        assert row["engine"] == "gloo", row
        assert row["operations"].keys() == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
        assert all(one["right"] for one in row["operations"].values())


def test_a_process_that_never_comes_is_counted_in_time() -> None:
    with within(30):
        rows = together(sys.executable, 3, missing=1)
        assert rows[0]["fault"] == "2 of 3 came within 5 s"
        assert "fault" in rows[1]


def test_one_wrong_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in of a bad network: the last byte of what arrives is another one."""
    real = ring._exchanged
    monkeypatch.setattr(
        ring, "_exchanged", lambda *words: (data := real(*words))[:-1] + bytes([data[-1] ^ 1])
    )
    head = port()
    rows: dict[int, dict[str, Any]] = {}

    def work(rank: int) -> None:
        rows[rank] = ring.measured(Place(rank=rank, world=2, head="127.0.0.1", port=head, seconds=10))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30 * PATIENCE)
    assert not any(one["right"] for row in rows.values() for one in row["operations"].values())


def test_a_stranger_who_knocks_is_no_process() -> None:
    head = port()
    rows: dict[int, dict[str, Any]] = {}

    def work(rank: int) -> None:
        rows[rank] = ring.measured(Place(rank=rank, world=2, head="127.0.0.1", port=head, seconds=10))

    first = threading.Thread(target=work, args=(0,))
    first.start()
    for text in (b"GET / HTTP/1.1\r\n", b"[7, 1]\n", b'{"a": 1}\n', b""):
        with ring._connected(Place(1, 2, "127.0.0.1", head), time.monotonic() + 5) as link:
            link.sendall(text)
    second = threading.Thread(target=work, args=(1,))
    second.start()
    first.join(30 * PATIENCE)
    second.join(30 * PATIENCE)
    assert all(one["right"] for row in rows.values() for one in row["operations"].values())
    assert len(rows) == 2
