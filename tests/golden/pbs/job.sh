#!/bin/bash
#PBS -l select=2:ncpus=4:mpiprocs=2:ngpus=2:mem=64gb
#PBS -l place=scatter
#PBS -l walltime=01:30:00
#PBS -o logs/train.log
#PBS -j oe
#PBS -k doe
#PBS -r y
#PBS -q debug
# step train of toy-run on toy, plan 01234567; starts in the run directory
set -euo pipefail
umask 077
[[ -z ${HPC_SUBMITTED:-} ]] || { cd -- "$PBS_O_WORKDIR"; . steps/train/env; }
export HPC_STEP=train
[[ ! -e steps/train/finished ]] || { echo 'step train is finished'; exit 0; }
unset OMP_NUM_THREADS NCPUS
. steps/train/pbs.sh
export HPC_JOB=$PBS_JOBID HPC_NODES=2 HPC_GPUS=2
HPC_ATTEMPT=$(hpc_attempt) HPC_HEAD=$(hpc_head "")
export HPC_ATTEMPT HPC_HEAD
. code/identity.sh
. code/publish.sh
. code/job.sh
hpc_claim "${HPC_SUBMITTED:+${HPC_SUBMITTED#hpctrain:}}"
hpc_begin_job
hpc_notice 5280
export HPC_CHECKPOINTS=/scratch/checkpoints/toy-run/"${HPC_OWN}"
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_start bash steps/train/mpiexec.sh 2 4 2 bash steps/train/rank.sh
