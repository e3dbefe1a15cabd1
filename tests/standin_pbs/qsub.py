"""qsub of the stand-in: options of its command line, those of #PBS lines below them, an id or a refusal."""

from __future__ import annotations

import getopt
import os
import re
import sys
from pathlib import Path
from typing import Any

from tests.standin_pbs import server
from tests.standin_pbs.mom import WHO
from tests.standin_pbs.state import Folder, clock, now, seconds

OPTIONS = "A:C:IJ:M:N:P:S:VW:Xa:e:fhj:k:l:m:o:p:q:r:u:v:z"
KNOWN = {
    "ncpus",
    "ngpus",
    "mem",
    "mpiprocs",
    "ompthreads",
    "host",
    "walltime",
    "select",
    "place",
    "filesystems",
    "system",
}


class Refused(Exception):
    """qsub's exit code and its words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def main(argv: list[str]) -> str:
    """Hand a job in and give its id."""
    options, script = _parsed(argv)
    try:
        text = Path(script).read_text()
    except FileNotFoundError:
        raise Refused(1, "script file:: No such file or directory") from None
    for line in _directives(text):
        below, _ = _parsed(line.split())
        options = {**below, **options, "-l": {**below["-l"], **options["-l"]}}
    folder = Folder.of_environment()
    row = _row(options, script)
    with folder.changing() as state:
        row["queue"] = options.get("-q", state["default_queue"])
        if why := server.judge(state, row, WHO):
            raise Refused(*why)
        lost, state["lost"] = state["lost"], ""
        if lost != "dropped":
            ident = server.accept(state, row)
            (folder.path / f"{ident}.SC").write_text(text)
    server.schedule(folder)
    if lost:
        raise Refused(183, "End of File")
    return ident


def _parsed(argv: list[str]) -> tuple[dict[str, Any], str]:
    try:
        pairs, rest = getopt.getopt(argv, OPTIONS)
    except getopt.GetoptError as error:
        raise Refused(2, f"invalid option -- '{error.opt}'") from None
    options: dict[str, Any] = {"-l": {}}
    for name, value in pairs:
        if name == "-l":
            for part in re.split(r",(?=\w+=)", value):
                key, _, said = part.partition("=")
                options["-l"][key] = said
        else:
            options[name] = value
    return options, rest[0] if rest else "STDIN"


def _directives(text: str) -> list[str]:
    """The #PBS lines up to the first command."""
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#PBS "):
            found.append(line.removeprefix("#PBS ").strip())
    return found


def _row(options: dict[str, Any], script: str) -> dict[str, Any]:
    """The job's attributes as qstat writes them; `chunk`, `on`, `home` and `path` are the stand-in's own."""
    asked = options["-l"]
    count, *parts = asked.get("select", "1:ncpus=1").split(":")
    chunk = dict(part.split("=", 1) for part in parts)
    for name in (*chunk, *asked):
        if name not in KNOWN:
            raise Refused(187, f"Unknown resource: {name}")
    numbers = {k: int(v) for k, v in chunk.items() if v.isdigit()}
    totals = {k: v * int(count) for k, v in numbers.items() if k in ("ncpus", "ngpus", "mpiprocs")}
    limit = clock(seconds(asked.get("walltime", "01:00:00")))
    name = options.get("-N", Path(script).name)
    if len(name) > 230:
        raise Refused(2, "Job name is too long ")
    folder = str(Path.cwd())
    row = {
        "Job_Name": name,
        "Job_Owner": f"{WHO}@login",
        "job_state": "H" if "-h" in options else "Q",
        "server": "pbs",
        "ctime": now(),
        "qtime": now(),
        "mtime": now(),
        "Hold_Types": "u" if "-h" in options else "n",
        "Join_Path": options.get("-j", "n"),
        "Keep_Files": options.get("-k", "n"),
        "Output_Path": f"login:{Path(folder, options.get('-o', f'{name}.o'))}",
        "Rerunable": "True",
        "Resource_List": {**totals, "nodect": int(count), **asked, "walltime": limit},
        "substate": 20 if "-h" in options else 10,
        "Variable_List": {
            "PBS_O_HOME": os.environ["HOME"],
            "PBS_O_HOST": "login",
            "PBS_O_LOGNAME": WHO,
            "PBS_O_PATH": os.environ["PATH"],
            "PBS_O_WORKDIR": folder,
            **_variables(options.get("-v", "")),
        },
        "chunk": [int(count), numbers],
        "home": os.environ["HOME"],
        "path": os.environ["PATH"],
    }
    if "-A" in options:
        row["Account_Name"] = options["-A"]
    if waits := options.get("-W", "").removeprefix("depend="):
        if not re.fullmatch(r"(after(ok|any|notok)(:[\w.\[\]-]+)+,?)+", waits):
            raise Refused(2, "illegal -W value")
        row["depend"] = waits
    return row


def _variables(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, text.split(",")):
        name, given, value = part.partition("=")
        if not given and name not in os.environ:
            raise Refused(1, "cannot send environment with the job")
        found[name] = value if given else os.environ[name]
    return found


def command(argv: list[str]) -> int:
    """As a program."""
    try:
        print(main(argv))
    except Refused as error:
        print(f"qsub: {error}", file=sys.stderr)
        return error.code
    return 0
