#!/bin/bash
# Hand a step to PBS and print its job's id.
# What the job sees of this shell goes into a private file: `qsub -v` changes quotes and backslashes in a value, fails
# where a variable is not set, and shows values to everybody who asks for the job.
# usage: qsub.sh STEP NAMES OPTIONS...   (in the run directory; NAMES with commas)
set -euo pipefail
umask 077
step=$1 names=$2
shift 2
mkdir -p logs # PBS holds a job for ever whose log has no folder
for name in ${names//,/ }; do
  [[ ! -v $name ]] || printf 'export %s=%q\n' "$name" "${!name}"
done >"steps/$step/env"
# -f: without it a helper hands the job in, even after we gave up waiting for qsub
exec qsub -f "$@" "steps/$step/job.sh"
