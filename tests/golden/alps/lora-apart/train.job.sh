#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --signal=B:USR1@120
#SBATCH --time=01:00:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER
#SBATCH --partition=normal
# step train of capybara-apart on alps, plan 6182a076; starts in the run directory
set -euo pipefail
umask 077
export HPC_STEP=train
[[ ! -e steps/train/finished ]] || { echo 'step train is finished'; exit 0; }
export PATH  # bash has a default, but does not export it by itself
command -v srun >/dev/null || { set +eu; . /etc/profile; set -eu; }
export HPC_JOB=$SLURM_JOB_ID HPC_ATTEMPT=${SLURM_RESTART_COUNT:-0}
export HPC_NODES=$SLURM_JOB_NUM_NODES HPC_GPUS=4
export HPC_HEAD=127.0.0.1
. steps/train/slurm.sh
. code/identity.sh
. code/publish.sh
. code/job.sh
hpc_claim "${1:-}"
hpc_begin_job
export HPC_CHECKPOINTS=/capstor/scratch/cscs/somebody/hpctrain/checkpoints/capybara-apart/"${HPC_OWN}"
export HPC_BAD_NODES=/users/somebody/.local/state/hpctrain/nodes-alps-
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=checkpoint-(?P<step>\d+)' --last=trainer_state.json
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/iopsstor/scratch/cscs/somebody/hpctrain/assets/.datasets-"${EUID}"  # trainers:trl: what one run made of the data, the next one need not make again
mkdir -p /iopsstor/scratch/cscs/somebody/hpctrain/assets
mkdir -p /capstor/scratch/cscs/somebody/hpctrain/checkpoints
mkdir -p /iopsstor/scratch/cscs/somebody/hpctrain/env
mkdir -p /capstor/scratch/cscs/somebody/hpctrain/runs
hpc_require /iopsstor/scratch/cscs/somebody/ce-images/pytorch-25.06-py3-8270ceff088f.sqsh
hpc_require /iopsstor/scratch/cscs/somebody/ce-images/pytorch-25.06-py3-venv-7c9b5435acac.sqsh
hpc_private HF_DATASETS_CACHE /iopsstor/scratch/cscs/somebody/hpctrain/assets/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=1 --ntasks=4 --ntasks-per-node=4 --cpus-per-task=72 --kill-on-bad-exit=1 --wait=600 --environment=./steps/"${HPC_STEP}"/environment.toml bash steps/train/rank.sh
