#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export HPC_RANK=${PMI_RANK:-${PALS_RANKID:?mpiexec gave this rank no number}} HPC_WORLD=4
export HPC_LOCAL_RANK=$((HPC_RANK % 2))
export HPC_NODE_RANK=$((HPC_RANK / 2))
export HPC_PULSE="/dev/shm/hpctrain-$UID-$HPC_JOB.$HPC_ATTEMPT.$HPC_NODE_RANK"
if ((HPC_LOCAL_RANK == 0)); then
  (PYTHONPATH=$HPC_RUN/code/job.zip "$HPC_PYTHON" -m hpctrain_job.hangs.watch --parent=$$ \
    --on-hang=say ${HPC_HANG_TERMS:-} </dev/null >>steps/train/watch.log 2>&1 &)
fi
exec >>"logs/train.rank$HPC_RANK.log" 2>&1
echo "hpctrain: rank $HPC_RANK on $HOSTNAME, job $HPC_JOB, attempt $HPC_ATTEMPT"
exec bash steps/train/task.sh
