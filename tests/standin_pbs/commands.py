"""The commands of the stand-in: `python -m tests.standin_pbs.commands NAME ARGUMENTS...`."""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from typing import Any

from tests.standin_pbs import qsub, server
from tests.standin_pbs.state import Folder, full, now

OWN = ("chunk", "on", "home", "path", "delete", "rerun")
NO_HISTORY = "qstat: PBS is not configured to maintain job history"
CANNOT = {"qstat": 255, "qsub": 162, "qselect": 162, "qdel": 162}


def main(argv: list[str]) -> int:
    """One command."""
    name, *arguments = argv
    settings = Folder.of_environment().read()
    if settings["frozen"]:
        time.sleep(600)
    if settings["down"]:
        if name == "qstat" and "json" in arguments:
            print(_document({}))
        words = f"{name}: cannot connect to server pbs (errno=15010)"
        print("Connection refused", file=sys.stderr)
        print("Couldn't connect to cluster: pbs" if name == "qdel" else words, file=sys.stderr)
        return CANNOT.get(name, 162)
    if name == "qsub":
        return qsub.command(arguments)
    if name == "qstat":
        code = qstat(arguments)
    else:
        code = qselect(arguments) if name == "qselect" else _change(name, arguments)
    server.schedule(Folder.of_environment())
    return code


def _document(jobs: dict[str, Any]) -> str:
    answer: dict[str, Any] = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": "pbs"}
    if jobs:
        answer["Jobs"] = {
            ident: {key: _number(key, value) for key, value in row.items() if key not in OWN}
            for ident, row in jobs.items()
        }
    return json.dumps(answer, indent="\t")


def _number(key: str, value: Any) -> Any:
    """A variable that looks like a number is written as one, which is how a tag can get lost."""
    if key != "Variable_List":
        return value
    return {k: _as_number(v) for k, v in value.items()}


def _as_number(text: str) -> Any:
    if not re.fullmatch(r"\d+(e\d+)?", text):
        return text
    number = float(text)
    return None if number == float("inf") else int(number)


def qstat(words: list[str]) -> int:
    """`qstat [-x] -f [-F json] ID...`."""
    folder, code = Folder.of_environment(), 0
    state, found = folder.read(), {}
    ids = [word for word in words if not word.startswith("-") and word != "json"]
    history = "-x" in words
    if history and not state["history"]:
        for ident in ids or [""]:
            print(f"{NO_HISTORY} {ident}", file=sys.stderr)
        ids = []
        code = 0
    elif not ids:
        found = {i: r for i, r in state["jobs"].items() if history or r["job_state"] != "F"}
    for ident in ids:
        if not re.fullmatch(r"\d+(\[\d*\])?(\.pbs)?", ident):
            print(f"qstat: illegally formed job identifier: {ident}", file=sys.stderr)
            code = 1
            continue
        row = state["jobs"].get(full(ident))
        if row is None:
            print(f"qstat: Unknown Job Id {full(ident)}", file=sys.stderr)
            code = 153
        elif row["job_state"] == "F" and not history:
            print(
                f"qstat: {ident} Job has finished, use -x or -H to obtain historical job information",
                file=sys.stderr,
            )
            code = 35
        else:
            found[full(ident)] = row
    if "json" in words:
        print(_document(found))
    else:
        for ident, row in found.items():
            print(f"Job Id: {ident}")
            plain = {k: v for k, v in row.items() if k not in OWN and not isinstance(v, dict)}
            print("".join(f"    {key} = {value}\n" for key, value in plain.items()))
    return code


def qselect(words: list[str]) -> int:
    """`qselect [-x] [-u USER] [-A ACCOUNT] [-N NAME]`."""
    pairs = dict(itertools.pairwise(words))
    state = Folder.of_environment().read()
    for ident, row in state["jobs"].items():
        wanted = [server.owner(row) == pairs.get("-u", server.owner(row))]
        wanted += [row.get("Account_Name") == pairs.get("-A", row.get("Account_Name"))]
        wanted += [row["Job_Name"] == pairs.get("-N", row["Job_Name"])]
        if all(wanted) and ("-x" in words or row["job_state"] != "F"):
            print(ident)
    return 0


def _change(name: str, words: list[str]) -> int:
    """qdel, qhold, qrls, qrerun: one job after the other, the last error counts."""
    code = 0
    with Folder.of_environment().changing() as state:
        for ident in (word for word in words if not word.startswith("-")):
            row = state["jobs"].get(full(ident))
            if row is None:
                print(f"{name}: Unknown Job Id {full(ident)}", file=sys.stderr)
                code = 153
            elif row["job_state"] == "F":
                print(f"{name}: Job has finished {full(ident)}", file=sys.stderr)
                code = 35
            else:
                _changed(state, name, full(ident), row)
    return code


def _changed(state: dict[str, Any], name: str, ident: str, row: dict[str, Any]) -> None:
    runs = row["job_state"] in ("R", "E")
    if name == "qrerun":
        row["rerun"] = True
    elif name == "qhold":
        row |= {"job_state": "H", "Hold_Types": "u", "substate": 20}
    elif name == "qrls":
        server.release(row, "u")
    elif runs:
        row["delete"] = True
    else:  # never ran: it is over at once, and what waits for it stays held for ever
        row |= {"job_state": "F", "substate": 91, "mtime": now()}
        if not state["history"]:
            del state["jobs"][ident]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
