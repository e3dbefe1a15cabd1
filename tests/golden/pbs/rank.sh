#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export HPC_RANK=${PMI_RANK:-${PALS_RANKID:?mpiexec gave this rank no number}} HPC_WORLD=4
export HPC_LOCAL_RANK=$((HPC_RANK % 2))
export HPC_NODE_RANK=$((HPC_RANK / 2))
exec >>"logs/train.rank$HPC_RANK.log" 2>&1
exec bash steps/train/task.sh
