#!/bin/bash
# Make the virtual environment of this checkout: VENV with what dev-requirements.txt names.
# usage: venv.sh VENV   (PYTHON: another interpreter than the first that fits)
set -euo pipefail
here=$(dirname "$0")
venv=$1
fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; }
for python in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.10}; do
  fits "$python" && break
  python=
done
[[ $python ]] || { echo "setup: no Python 3.10 to 3.13; name one: PYTHON=/path/to/python3 make" >&2; exit 1; }
if ! "$python" -c 'import ensurepip' 2>/dev/null; then # Debian keeps it in a package of its own
  "$here/debian.sh" "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
fi
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check --upgrade pip
"$venv/bin/pip" install -q -r dev-requirements.txt
touch "$venv/.made"
