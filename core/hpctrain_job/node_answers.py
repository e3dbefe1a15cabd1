"""Questions to a node, asked on it: programs with their limits, and what each of them wrote.

`python -m hpctrain_job.node_answers QUESTIONS FOLDER` reads a list of tables (name, argv, seconds, given) and
leaves FOLDER/RANK.json: the node's name, when it began, the answers by their names. `{python}` is its Python.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PYTHON = "{python}"
"""Stands for the Python of the node."""
MOST = 200_000
"""Characters of an answer."""


def answer(argv: Sequence[str], seconds: float, stdin_text: str = "") -> dict[str, Any]:
    """What a program wrote and how it ended; `fault` says why there is no answer."""
    words = [sys.executable if word == PYTHON else word for word in argv]
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(stdin_text, timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return {"fault": f"{argv[0]} did not answer within {seconds:g} s"}
    except FileNotFoundError:
        return {"fault": f"{argv[0]} is not here"}
    except OSError as error:
        return {"fault": f"{argv[0]}: {error.strerror}"}
    return {"out": out[:MOST], "err": err[:MOST], "code": process.returncode}


def answers(questions: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Name -> answer, one after the other."""
    return {q["name"]: answer(q["argv"], q["seconds"], q["given"]) for q in questions}


def main(questions: Path, folder: Path, rank: str) -> None:
    """Ask, and leave the answers under this node's rank; whole or not at all."""
    document: dict[str, Any] = {"host": socket.gethostname(), "rank": rank, "began": time.time()}
    document["answers"] = answers(json.loads(questions.read_text(encoding="utf-8")))
    folder.mkdir(exist_ok=True)
    partial = folder / f".{rank}"
    partial.write_text(json.dumps(document), encoding="utf-8")
    partial.rename(folder / f"{rank}.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), os.environ.get("HPC_NODE_RANK", "0"))
