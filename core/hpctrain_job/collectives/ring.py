"""An all-reduce over sockets, of the standard library: each process has one neighbour behind and one ahead.

The sum of integers is exclusive or, which Python does at the speed of memory.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from hpctrain_job.collectives.place import Place

SIZES = (8, 2**20, 2**24)
"""Bytes that are reduced: a word for the way, the others for the bandwidth."""
ROUNDS = 3
INTRODUCTION_SECONDS = 2.0
MOST = 10_000_000
"""Bytes of a table with all addresses."""
_LENGTH = 8


def measured(place: Place) -> dict[str, Any]:
    """Operation -> whether its values were right, and how long it took."""
    with _ring(place) as (ahead, behind):
        operations = {f"all_reduce {size}": _reduced(place, size, ahead, behind) for size in SIZES}
    return {"engine": "sockets", "device": "cpu", "operations": operations}


def _reduced(place: Place, size: int, ahead: socket.socket, behind: socket.socket) -> dict[str, Any]:
    values = _values(place.rank, size)
    expected = 0
    for rank in range(place.world):
        expected ^= int.from_bytes(_values(rank, size), "little")
    times, is_right = [], True
    for _ in range(ROUNDS):
        began = time.perf_counter()
        total = _all_reduce(place, values, ahead, behind)
        times.append(time.perf_counter() - began)
        is_right = is_right and int.from_bytes(total, "little") == expected
    return {"right": is_right, "seconds": min(times), "bytes": size}


def _values(rank: int, size: int) -> bytes:
    return random.Random(rank).randbytes(size)  # noqa: S311


def _all_reduce(place: Place, data: bytes, ahead: socket.socket, behind: socket.socket) -> bytes:
    """Parts go round once and are added up, then round again as they are."""
    part = -(-len(data) // place.world)
    parts = [data[part * number : part * (number + 1)] for number in range(place.world)]
    for turn in range(2 * (place.world - 1)):
        number = (place.rank - turn) % place.world
        arrived = _exchanged(parts[number], ahead, behind, place.seconds)
        number = (number - 1) % place.world
        if turn < place.world - 1:
            reduced = int.from_bytes(parts[number], "little") ^ int.from_bytes(arrived, "little")
            arrived = reduced.to_bytes(len(parts[number]), "little")
        parts[number] = arrived
    return b"".join(parts)


def _exchanged(data: bytes, ahead: socket.socket, behind: socket.socket, seconds: float) -> bytes:
    """Send ahead while what is behind arrives: both at once, or all would wait with full buffers."""
    faults: list[OSError] = []

    def send() -> None:
        try:
            ahead.sendall(len(data).to_bytes(_LENGTH, "big") + data)
        except OSError as error:
            faults.append(error)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    arrived = _received(behind, int.from_bytes(_received(behind, _LENGTH), "big"))
    sender.join(seconds)
    if faults:
        raise faults[0]
    return arrived


def _received(link: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = link.recv(min(count - len(data), 2**20))
        if not piece:
            raise ConnectionError("a neighbour left")
        data += piece
    return bytes(data)


@contextlib.contextmanager
def _ring(place: Place) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The links to the neighbours ahead and behind."""
    until = time.monotonic() + place.seconds
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(socket.create_server(("", 0), backlog=2))
        door.settimeout(place.seconds)
        addresses = _met(place, door.getsockname()[1], until)
        ahead = socket.create_connection(addresses[(place.rank + 1) % place.world], timeout=place.seconds)
        stack.enter_context(ahead)
        behind, _ = door.accept()
        stack.enter_context(behind)
        for link in (ahead, behind):
            link.settimeout(place.seconds)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield ahead, behind


def _met(place: Place, port: int, until: float) -> list[tuple[str, int]]:
    """The address and port of every process, by rank: all of them tell the first one, which tells all."""
    if place.rank == 0:
        return _told_to_all(place, port, until)
    with _connected(place, until) as link:
        link.sendall(json.dumps([place.rank, port]).encode() + b"\n")
        with link.makefile("rb") as lines:
            addresses = json.loads(lines.readline(MOST) or b"[]")
    if len(addresses) != place.world:
        raise ConnectionError("the first process left")
    return [(address or place.head, port) for address, port in addresses]


def _told_to_all(place: Place, port: int, until: float) -> list[tuple[str, int]]:
    addresses: dict[int, tuple[str, int]] = {0: ("", port)}
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(socket.create_server(("", place.port), backlog=place.world))
        links = []
        while len(addresses) < place.world:
            door.settimeout(max(0.01, until - time.monotonic()))
            try:
                link, (host, _) = door.accept()
            except TimeoutError:
                count = f"{len(addresses)} of {place.world}"
                raise TimeoutError(f"{count} came within {place.seconds:g} s") from None
            stack.enter_context(link)
            rank, own_port = _introduced(link)
            if 0 < rank < place.world and rank not in addresses:
                addresses[rank] = (host, own_port)
                links.append(link)
        table = [addresses[rank] for rank in range(place.world)]
        for link in links:
            link.sendall(json.dumps(table).encode() + b"\n")
    return table


def _introduced(link: socket.socket) -> tuple[int, int]:
    """Who knocks, as its rank and port; rank -1 where it is somebody else's program."""
    link.settimeout(INTRODUCTION_SECONDS)
    try:
        with link.makefile("rb") as lines:
            rank, port = map(int, json.loads(lines.readline(200)))
    except (OSError, ValueError, TypeError):
        return -1, 0
    return rank, port


def _connected(place: Place, until: float) -> socket.socket:
    """To the first process, which may begin later."""
    while (link := _try(place)) is None:
        if time.monotonic() > until:
            raise ConnectionError(f"{place.head} does not answer")
        time.sleep(0.1)
    return link


def _try(place: Place) -> socket.socket | None:
    try:
        return socket.create_connection((place.head, place.port), timeout=place.seconds)
    except OSError:
        return None
