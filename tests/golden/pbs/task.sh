#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export PYTHONPATH="$HPC_RUN/code/job.zip${PYTHONPATH:+:$PYTHONPATH}"
true
