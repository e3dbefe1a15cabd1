#!/bin/bash
# The task of a job that is held for people. With a terminal: an interactive bash inside the environment.
# Without: wait for somebody to attach, then until they leave; nobody in five minutes ends the job.
# usage: hold.sh FOLDER   (in the run directory)
set -euo pipefail
here=$PWD/steps/$HPC_STEP
if [[ -t 0 ]]; then
  cd -- "$1"
  exec bash --rcfile "$here/rc" -i
fi
: >"$here/ready"
for ((waited = 0; waited < 300; waited++)); do
  [[ ! -e $here/attached ]] || break
  sleep 1
done
[[ -e $here/attached ]] || { echo "nobody attached in five minutes"; exit 0; }
until [[ -e $here/over ]]; do sleep 1; done
