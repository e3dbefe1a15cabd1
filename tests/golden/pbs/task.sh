#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export PYTHONPATH="$HPC_RUN/code/job.zip:$HPC_RUN/code/job.zip/hpctrain_job/hangs/hook${PYTHONPATH:+:$PYTHONPATH}"
true
