#!/bin/bash
# Make a virtual environment of this checkout, with Python's own pip and what is named.
# usage: venv.sh VENV [WORDS OF pip install]   (PYTHON: another interpreter than the first that fits)
set -euo pipefail
here=$(dirname "$0")
venv=$1
# 3.14 comes last: what we depend on has wheels for it, and no test of ours has run on it yet.
fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null; }
for python in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.10 python3.14}; do
  fits "$python" && break
  python=
done
[[ $python ]] || { echo "setup: no Python 3.10 to 3.14; name one: PYTHON=/path/to/python3 make" >&2; exit 1; }
if ! "$python" -c 'import ensurepip' 2>/dev/null; then # Debian keeps it in a package of its own
  "$here/debian.sh" "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
fi
# By its own name: on another machine `python3` may be another one (twins see this environment).
"$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')" -m venv --clear "$venv"
if (($# > 1)); then "$venv/bin/pip" install -q --disable-pip-version-check "${@:2}"; fi
touch "$venv/.made"
