"""Programs of a site that a twin does not have: scripts that give the answers which a capture recorded.

Everything else that is asked of them goes on to the program of this name, where there is one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from hpctrain.doctor.question import Answer

FOLDER = "/usr/local/bin"
SLURM = ("sinfo", "sbatch", "srun", "scontrol", "squeue", "sacct")
BUILT = (
    *SLURM, "sacctmgr", "salloc", "module", "ls", "printenv", "hostname", "echo", "uname", "grep", "cat",
    "env",
)  # fmt: skip
"""Words whose answers a twin gives itself."""
ASKED = {
    "system compilers": ("gcc", "-dumpfullversion"),
    "system apptainer": ("apptainer", "--version"),
    "driver": ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
}
_SHELL = re.compile(r"[|<>;&$`()*?\\\"'\[\]{}]")

Programs = dict[str, dict[str, str]]


def programs(answers: Mapping[str, Answer]) -> dict[str, str]:
    """Path -> script."""
    scripts: Programs = {}
    for (program, words), text in _answers(answers):
        if re.fullmatch(r"[\w.+-]+", program):
            scripts.setdefault(program, {})[words] = text
    return {f"{FOLDER}/{program}": _script(program, rows) for program, rows in scripts.items()}


def _answers(answers: Mapping[str, Answer]) -> Iterator[tuple[tuple[str, str], str]]:
    for name, answer in answers.items():
        if answer.code or answer.fault or not answer.out:
            continue
        if (name in ASKED and name != "driver") or (name == "driver" and re.match(r"\d+\.", answer.out)):
            program, *words = ASKED[name]
            yield (program, " ".join(words)), answer.out
        elif name == "scheduler version of Slurm":
            yield from (((program, "--version"), answer.out) for program in SLURM)
        elif name.startswith("verify "):
            last = name.removeprefix("verify ").rpartition("&&")[2].strip()
            program, _, words_text = last.partition(" ")
            if not _SHELL.search(last) and program not in BUILT:
                yield (program, words_text), answer.out


def _script(program: str, rows: Mapping[str, str]) -> str:
    cases = "".join(
        f"  {shlex.quote(words)}) printf %s {shlex.quote(text)}; exit ;;\n" for words, text in rows.items()
    )
    return (
        "#!/bin/bash\n# A stand-in: what a capture recorded of the site's own.\n"
        f'case "$*" in\n{cases}esac\n'
        f'for path in $(type -aP {program}); do [[ $path -ef $0 ]] || exec "$path" "$@"; done\n'
        f'echo "{program}: the capture has no answer to: $*" >&2\nexit 127\n'
    )
