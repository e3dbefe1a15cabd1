#!/bin/bash
# Ask this node the questions of a file: ask.sh QUESTIONS FOLDER
# The login node's Python may be of another architecture, and the system's older than 3.10.
for python in "$HPC_PYTHON" python3.14 python3.13 python3.12 python3.11 python3.10 python3; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    exec "$python" -m hpctrain_job.node_answers "$1" "$2"
  fi
done
echo "no Python from 3.10 on is on this node" >&2
exit 69
