#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:4
#SBATCH --mem=480G
#SBATCH --signal=B:USR1@120
#SBATCH --time=01:00:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER
#SBATCH --partition=boost_usr_prod
# step train of capybara-lora-node on leonardo, plan ce4c7b15; starts in the run directory
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
export HPC_CHECKPOINTS=/leonardo_work/abc123/somebody/hpctrain/checkpoints/capybara-lora-node/"${HPC_OWN}"
export HPC_BAD_NODES=/leonardo_scratch/fast/abc123/hpctrain/data/nodes-leonardo-
export HPC_BAD_NODES_OWNERS=''
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=checkpoint-(?P<step>\d+)' --last=trainer_state.json
hpc_module load gcc/12.2.0
hpc_module load python/3.11.7
export SRUN_CPUS_PER_TASK=8  # leonardo: since 22.05 a step started inside a job gets one core unless told
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/leonardo_work/abc123/hpctrain/assets/.datasets-"${EUID}"  # trainers:trl: what one run made of the data, the next one need not make again
mkdir -p logs/slurm
ln -sfn ../train.log logs/slurm/capybara-lora-node_"${HPC_JOB}".out
hpc_trust /leonardo_scratch/fast/abc123/hpctrain/env/venv-8919ddbe092f
hpc_private HF_DATASETS_CACHE /leonardo_work/abc123/hpctrain/assets/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=1 --ntasks=4 --ntasks-per-node=4 --cpus-per-task=8 --kill-on-bad-exit=1 --wait=600 bash steps/train/rank.sh
