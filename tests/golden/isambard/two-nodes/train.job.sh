#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --signal=B:USR1@120
#SBATCH --time=00:20:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER,PROJECTDIR,SCRATCHDIR
#SBATCH --network=disable_rdzv_get
# step train of regression on isambard, plan 78dec25e; starts in the run directory
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
export HPC_CHECKPOINTS=/projectdir/somebody/hpctrain/checkpoints/regression/"${HPC_OWN}"
export HPC_BAD_NODES=/projectdir/hpctrain/data/nodes-isambard-
export HPC_BAD_NODES_OWNERS=''
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_module reset
hpc_module load PrgEnv-cray
hpc_module load cuda/12.6
hpc_module load brics/aws-ofi-nccl/1.8.1
export HPC_SOURCE="${HPC_RUN}"/source  # core: programs write beside their code, and the code itself serves other runs
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/projectdir/hpctrain/assets/.datasets-"${EUID}"  # trainers:command: what one run made of the data, the next one need not make again
hpc_source /projectdir/hpctrain/assets/file-20c06a68a821
hpc_fabric --nodes=2 --per-node=4 --on-slow=stop '--proof=NET/OFI Selected [Pp]rovider is cxi' '--refuse=Using network Socket|NET/OFI Selected [Pp]rovider is (?!cxi)|NET/OFI No eligible providers|network AWS Libfabric not found|Using internal network plugin'
ln -sfn train.log logs/regression-"${HPC_JOB}".out
hpc_trust /projectdir/hpctrain/env/uv-8456335b182c
hpc_private HF_DATASETS_CACHE /projectdir/hpctrain/assets/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=72 --kill-on-bad-exit=1 bash steps/train/node.sh
hpc_start srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72 --kill-on-bad-exit=1 --wait=600 bash steps/train/rank.sh
