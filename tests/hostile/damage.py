"""What is done to a file that was right: texts that are no document, values no key expects, damage by chance.

All of it is seeded, so that every find can be made again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

DEEP = 100_000
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**6, 10**9, 2**63, 10**30, 1.5, 1e308, float("nan"), float("inf"),
    "", "3", "../../../etc/passwd", "/dev/zero", "\ud800", "a\x00b", "\x1b]0;x\x07", "x" * 100_000,
    [], [[]], [None], ["x"], {}, {"": {}}, {"v": 1},
)  # fmt: skip
"""In the place of any value of a document."""

ANYTHING: dict[str, bytes] = {
    "empty": b"",
    "a line end": b"\n",
    "NUL": b"\0" * 64,
    "not UTF-8": b"\xff\xfe\xfd\xfc",
    "UTF-16": '{"v": 1}\n'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"v": 1}\n',
    "escape codes": b"\x1b[2J\x1b]0;owned\x07\x9b31m\r\n" * 100,
    "null": b"null\n",
    "a number": b"3\n",
    "a list": b"[]\n",
    "a list of nothing": b"[null]\n",
    "an object": b"{}\n",
    "a text": b'"x"\n',
    "NaN": b"NaN\n",
    "lone surrogate": b'{"v": "\\ud800", "event": "\\udfff", "step": "\\ud800"}\n',
    "a key twice": b'{"v": 1, "v": 2, "event": "x", "event": []}\n',
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and cut": b"[" * DEEP,
    "deep in TOML": b"a = " + b"[" * DEEP,
    "deep keys in TOML": b".".join([b"a"] * DEEP) + b" = 1\n",
    "deep tables in TOML": b"[" + b".".join([b"a"] * DEEP) + b"]\n",
    "many digits": b'{"v": ' + b"9" * 100_000 + b"}\n",
    "many digits in TOML": b"a = " + b"9" * 100_000 + b"\n",
    "a long line": b"x" * (8 << 20),
    "a long line of digits": b"9" * (4 << 20) + b"\n",
    "a long line of brackets": b"<" * (1 << 20) + b"\n",
    "many lines": b"x\n" * (1 << 19),
    "many objects": b"{}\n" * (1 << 18),
    "many spaces": b" " * (8 << 20) + b"\n",
    "loss without end": b"loss: " * 200_000 + b"\n",
    "a traceback without end": b"Traceback (most recent call last):\n" * 50_000,
    "errors without end": b"error[x]: y\n  hint: z\n" * 50_000,
}
"""In the place of any file."""


def of_document(text: str, rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """A JSON document, or lines of them, with other values, keys gone, and keys that nobody knows."""
    lines = text.splitlines() if text.count("\n") > 1 and text.startswith('{"') else [text]
    for _ in range(count):
        number = rng.randrange(len(lines))
        document = json.loads(lines[number])
        places = list(_places(document))
        if not places:
            continue
        path = rng.choice(places)
        value = rng.choice(VALUES)
        how = rng.choice(("replace", "replace", "replace", "remove", "add"))
        changed = _changed(document, path, value, how)
        whole = [*lines[:number], json.dumps(changed), *lines[number + 1 :]]
        name = f"line {number} {'.'.join(map(str, path))} {how} {str(value)[:20]!r}"
        yield name, "\n".join(whole).encode("utf-8", "surrogatepass") + b"\n"


def by_chance(data: bytes, rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Bytes flipped, taken out, put in, doubled; ends cut off; numbers made the largest there are."""
    for number in range(count):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at, size = rng.randrange(len(damaged) + 1), rng.choice((1, 1, 4, 8, 64))
            how = rng.randrange(6)
            if how == 0 and at < len(damaged):
                damaged[at] ^= 1 << rng.randrange(8)
            elif how == 1:
                del damaged[at : at + size]
            elif how == 2:
                damaged[at:at] = rng.randbytes(size)
            elif how == 3:
                damaged[at : at + size] = rng.choice((b"\xff", b"\0", b"9", b'"', b"[", b"{", b"\n")) * size
            elif how == 4:
                damaged[at:at] = damaged[max(0, at - size) : at] * rng.choice((1, 100))
            else:
                del damaged[at:]
        yield f"chance {number}", bytes(damaged)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _changed(document: Any, path: tuple[Any, ...], value: Any, how: str) -> Any:
    at = document
    for key in path[:-1]:
        at = at[key]
    if how == "replace":
        at[path[-1]] = value
    elif how == "remove":
        del at[path[-1]]
    elif isinstance(at, dict):
        at[f"{path[-1]}x"] = value
    else:
        at.append(value)
    return document
