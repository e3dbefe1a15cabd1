#!/bin/bash
# step train of demo on local, plan a21361f0; starts in the run directory
set -euo pipefail
umask 077
export HPC_STEP=train
[[ ! -e steps/train/finished ]] || { echo 'step train is finished'; exit 0; }
export HPC_JOB="${HPC_JOB:-local-$$}" HPC_ATTEMPT=0 HPC_HEAD=127.0.0.1
export HPC_NODES=1 HPC_GPUS=0
hpc_final() { :; }  # nothing is queued again here
. code/identity.sh
. code/publish.sh
. code/job.sh
hpc_claim "${1:-}"
hpc_begin_job
export HPC_CHECKPOINTS=/home/somebody/.local/share/hpctrain/checkpoints/demo/"${HPC_OWN}"
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=checkpoint-(?P<step>\d+)' --last=trainer_state.json
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/home/somebody/.local/share/hpctrain/assets/.datasets-"${EUID}"  # trainers:trl: what one run made of the data, the next one need not make again
hpc_trust /home/somebody/.local/share/hpctrain/env/venv-cd162cafbf5b
hpc_private HF_DATASETS_CACHE /home/somebody/.local/share/hpctrain/assets/.datasets-"${EUID}"
hpc_start bash steps/train/ranks.sh 1 1 bash steps/train/rank.sh
