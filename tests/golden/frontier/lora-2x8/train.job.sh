#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --gpus-per-node=8
#SBATCH --signal=B:USR1@120
#SBATCH --time=01:30:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER
#SBATCH --partition=batch
#SBATCH --network=disable_rdzv_get
# step train of guanaco-lora on frontier, plan d22585da; starts in the run directory
set -euo pipefail
umask 077
export HPC_STEP=train
[[ ! -e steps/train/finished ]] || { echo 'step train is finished'; exit 0; }
export PATH  # bash has a default, but does not export it by itself
command -v srun >/dev/null || { set +eu; . /etc/profile; set -eu; }
export HPC_JOB=$SLURM_JOB_ID HPC_ATTEMPT=${SLURM_RESTART_COUNT:-0}
export HPC_NODES=$SLURM_JOB_NUM_NODES HPC_GPUS=8
HPC_HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
export HPC_HEAD=${HPC_HEAD%%$'\n'*}
. steps/train/slurm.sh
. code/identity.sh
. code/publish.sh
. code/job.sh
hpc_claim "${1:-}"
hpc_begin_job
export HPC_CHECKPOINTS=/lustre/orion/abc123/scratch/somebody/hpctrain/checkpoints/guanaco-lora/"${HPC_OWN}"
export HPC_SECRETS=/ccs/home/somebody/.local/state/hpctrain/secrets/guanaco-lora-"${HPC_OWN}"/"${HPC_STEP}"
export HPC_BAD_NODES=/lustre/orion/abc123/proj-shared/hpctrain/assets/nodes-frontier-
export HPC_BAD_NODES_OWNERS=''
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=checkpoint-(?P<step>\d+)' --last=trainer_state.json
hpc_module reset
hpc_module load PrgEnv-gnu/8.7.0
hpc_module load cpe/26.03
hpc_module load miniforge3/23.11.0-0
hpc_module load rocm/7.1.1
hpc_module load craype-accel-amd-gfx90a
hpc_module unload miniforge3/23.11.0-0
hpc_module load rccl-net-plugin
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/lustre/orion/abc123/proj-shared/hpctrain/assets/.datasets-"${EUID}"  # trainers:trl: what one run made of the data, the next one need not make again
hpc_fabric --nodes=2 --per-node=8 --on-slow=stop '--proof=NET/OFI Selected [Pp]rovider is cxi' '--refuse=Using network Socket|NET/OFI Selected [Pp]rovider is (?!cxi)|NET/OFI No eligible providers|network (?:OFI|AWS Libfabric) not found|Using internal network plugin'
. steps/train/cray.sh
ln -sfn train.log logs/guanaco-lora-"${HPC_JOB}".o
hpc_trust /lustre/orion/abc123/proj-shared/hpctrain/env/conda-b47cf95f59af
hpc_private HF_DATASETS_CACHE /lustre/orion/abc123/proj-shared/hpctrain/assets/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=7 --kill-on-bad-exit=1 bash steps/train/node.sh
hpc_start srun --export=ALL --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 --kill-on-bad-exit=1 --wait=600 --gpus-per-task=1 --gpu-bind=closest bash steps/train/rank.sh
