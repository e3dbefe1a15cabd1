#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export PYTHONUNBUFFERED=1  # trainers:trl: the log shows the last line before a crash
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export HF_DATASETS_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export WANDB_MODE=offline  # compute: compute nodes have no internet
[[ -v CUDA_HOME ]] || export CUDA_HOME=/leonardo/prod/opt/compilers/cuda/12.6/none  # leonardo: where CUDA 12.6 lies; the module would bring stub libraries too
export PATH=/leonardo_scratch/fast/abc123/hpctrain/env/venv-8919ddbe092f/bin"${PATH:+:$PATH}"  # environments:venv: python is the environment's
export VIRTUAL_ENV=/leonardo_scratch/fast/abc123/hpctrain/env/venv-8919ddbe092f  # environments:venv: tools look here for the active environment
export PYTHONNOUSERSITE=1  # environments:venv: packages in ~/.local would win over the environment's
unset PYTHONHOME  # environments:venv: another Python's standard library breaks this one
export RANK="${HPC_RANK}"  # trainers:trl: which process this is, as torch reads it
export LOCAL_RANK="${HPC_LOCAL_RANK}"  # trainers:trl: which GPU of the node is its own
export WORLD_SIZE="${HPC_WORLD}"  # trainers:trl: how many processes train together
export MASTER_ADDR="${HPC_HEAD}"  # trainers:trl: where rank 0 listens for the others
export MASTER_PORT="${HPC_PORT}"  # trainers:trl: derived from the job, so that two never meet
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:trl: ranks that share cores burn them
export TOKENIZERS_PARALLELISM=false  # trainers:trl: its threads do not survive a fork
[[ -v HPC_CACHE ]] || export HPC_CACHE="${HPC_RUN}"/cache  # trainers:trl: the run's own place for what programs keep
[[ -v XDG_CACHE_HOME ]] || export XDG_CACHE_HOME="${HPC_RUN}"/cache  # trainers:trl: what libraries without a variable of their own keep in the home folder
[[ -v HF_HOME ]] || export HF_HOME="${HPC_RUN}"/cache/huggingface  # trainers:trl: the default is in the home folder, which is small
[[ -v TORCH_HOME ]] || export TORCH_HOME="${HPC_RUN}"/cache/torch  # trainers:trl: weights that torch fetches; home folders are small
[[ -v TORCH_EXTENSIONS_DIR ]] || export TORCH_EXTENSIONS_DIR="${HPC_RUN}"/cache/extensions  # trainers:trl: kernels compile at the first start; two users of one cache wait for each other
[[ -v TRITON_CACHE_DIR ]] || export TRITON_CACHE_DIR="${HPC_RUN}"/cache/triton  # trainers:trl: kernels compile at the first step; home folders are small and shared by all runs
[[ -v WANDB_DIR ]] || export WANDB_DIR="${HPC_RUN}"  # trainers:trl: where `hpctrain sync` looks for what was logged without a network
[[ -v WANDB_DATA_DIR ]] || export WANDB_DATA_DIR="${HPC_RUN}"/cache/wandb  # trainers:trl: artifacts that wait to be sent; the default is in the home folder
export PYTHONPATH="$HPC_RUN/code/job.zip:$HPC_RUN/code/job.zip/hpctrain_job/hangs/hook${PYTHONPATH:+:$PYTHONPATH}"
exec python -m hpctrain_trl --config "${HPC_RUN}"/steps/train/trl.json
