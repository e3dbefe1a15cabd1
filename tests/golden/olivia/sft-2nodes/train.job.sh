#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --mem=440G
#SBATCH --signal=B:USR1@120
#SBATCH --time=04:00:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER
#SBATCH --partition=accel
#SBATCH --network=disable_rdzv_get
# step train of nynorsk-nodes on olivia, plan e5635882; starts in the run directory
set -euo pipefail
umask 077
export HPC_STEP=train
[[ ! -e steps/train/finished ]] || { echo 'step train is finished'; exit 0; }
export PATH  # bash has a default, but does not export it by itself
command -v srun >/dev/null || { set +eu; . /etc/profile; set -eu; }
export HPC_JOB=$SLURM_JOB_ID HPC_ATTEMPT=${SLURM_RESTART_COUNT:-0}
export HPC_NODES=$SLURM_JOB_NUM_NODES HPC_GPUS=4
HPC_HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
export HPC_HEAD=${HPC_HEAD%%$'\n'*}
. steps/train/slurm.sh
. code/identity.sh
. code/publish.sh
. code/job.sh
hpc_claim "${1:-}"
hpc_begin_job
export HPC_CHECKPOINTS=/cluster/work/projects/abc123/somebody/checkpoints/nynorsk-nodes/"${HPC_OWN}"
export HPC_BAD_NODES=/cluster/projects/abc123/hpctrain/overlays/nodes-olivia-
export HPC_BAD_NODES_OWNERS=@abc123
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=checkpoint-(?P<step>\d+)' --last=trainer_state.json
hpc_module load NRIS/GPU
hpc_module load NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/cluster/work/projects/abc123/somebody/hf_cache/.datasets-"${EUID}"  # trainers:trl: what one run made of the data, the next one need not make again
hpc_link "${HPC_RUN}"/logs/train.log /cluster/work/projects/abc123/somebody/logs/nynorsk-nodes_"${HPC_JOB}".out
hpc_fabric --nodes=2 --per-node=4 --on-slow=stop '--proof=NET/OFI Selected [Pp]rovider is cxi' '--refuse=Using network Socket|NET/OFI Selected [Pp]rovider is (?!cxi)|NET/OFI No eligible providers|network AWS Libfabric not found|Using internal network plugin'
mkdir -p /cluster/work/projects/abc123/somebody/hf_cache
mkdir -p /cluster/work/projects/abc123/somebody/checkpoints
mkdir -p /cluster/projects/abc123/hpctrain/overlays
mkdir -p /cluster/work/projects/abc123/somebody/runs
hpc_trust /cluster/projects/abc123/hpctrain/containers/pytorch-25.06-py3_8270ceff088f_arm64.sif @abc123
hpc_require /cluster/projects/abc123/hpctrain/overlays/myenv_d1b1091ba0b4_arm64.sqsh @abc123
hpc_private HF_DATASETS_CACHE /cluster/work/projects/abc123/somebody/hf_cache/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72 --kill-on-bad-exit=1 --wait=600 bash steps/train/rank.sh
