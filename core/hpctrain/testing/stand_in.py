"""Programs that the kit puts where an environment's own would be; each writes down what it was given.

They need no package and obey no variable of Python, so that what a wrong environment does to Python is seen
in what they write and not in how they fail.
"""

from __future__ import annotations

import sys
from pathlib import Path

PYTHON = """\
import json, os, sys
seen = {{"who": {who!r}, "argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}
file = os.path.join(os.environ["HPC_RUN"], "seen." + os.environ.get("HPC_RANK", "none") + ".json")
json.dump(seen, open(file, "w"))
codes = [int(word[len("--exit="):]) for word in sys.argv if word.startswith("--exit=")]
sys.exit(codes[0] if codes else 0)
"""

ENGINE = """\
import fnmatch, json, os, sys
words, hands_on, image = sys.argv[1:], {hands_on!r}, {image!r}
with open(os.environ["HPC_RUN"] + "/engine.txt", "a") as file:  # everybody on a node can read an argv
    file.write("\\0".join(words))
begins = [n for n, word in enumerate(words[1:]) if words[n] == "bash" and word.endswith("/task.sh")]
if not begins:
    sys.exit("the engine was not given `bash steps/STEP/task.sh` to run: " + " ".join(words))
options, command = words[: begins[-1]], words[begins[-1] :]
env = dict(os.environ) if hands_on else {{"HOME": "/root"}}
for word, following in zip(options, options[1:] + [""]):
    name, equals, value = word.partition("=")
    if name in ("--env", "-e"):
        wanted, equals, given = (value if equals else following).partition("=")
        kept = {{key: os.environ[key] for key in os.environ if fnmatch.fnmatch(key, wanted)}}
        env.update({{wanted: given}} if equals else kept)
    if name in ("--workdir", "--pwd", "--cwd", "-w"):
        os.chdir(value if equals else following)
        hands_on = True
if not hands_on:
    os.chdir("/")
env["PATH"] = image + ":/usr/bin:/bin"
os.execvpe(command[0], command, env)
"""
"""A container engine: it enters no image and hides no folder, but hands on what its options say. Which
folders are seen inside is judged by the words alone."""

STARTER = """\
#!/bin/bash
# Starts every rank as another node would, and passes signals on; the first code that is not 0 counts.
set -euo pipefail
per_node=$1 world=$2
shift 2
ranks=()
pass() { kill -s "$1" "${ranks[@]}" 2>/dev/null || true; }
trap 'pass USR1' USR1
trap 'pass TERM' TERM
for ((rank = 0; rank < world; rank++)); do
  export KIT_RANK=$rank KIT_WORLD=$world KIT_LOCAL_RANK=$((rank % per_node))
  export KIT_NODE_RANK=$((rank / per_node))
  "$@" &
  ranks+=("$!")
done
code=0
for rank in "${ranks[@]}"; do
  while :; do
    ended=0
    wait "$rank" || ended=$?
    kill -0 "$rank" 2>/dev/null || break
  done
  # A signal that ended the wait may have hidden the rank's own code: bash remembers it.
  if ((ended > 128)); then
    ended=0
    wait "$rank" 2>/dev/null || ended=$?
  fi
  ((code)) || code=$ended
done
exit "$code"
"""


def python(folder: Path, who: str) -> None:
    """`python` and `python3` in a folder of programs; what they write says `who` they are."""
    program(folder / "python", PYTHON.format(who=who))
    if not (folder / "python3").is_symlink():
        (folder / "python3").symlink_to("python")


def engine(folder: Path, name: str, image: Path, *, hands_on: bool) -> None:
    """A container engine of this name, whose images have the programs of `image`."""
    program(folder / name, ENGINE.format(hands_on=hands_on, image=str(image)))


def program(path: Path, code: str) -> None:
    """A program in Python that reads no variable meant for Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable} -IE\n{code}", encoding="utf-8")
    path.chmod(0o755)
