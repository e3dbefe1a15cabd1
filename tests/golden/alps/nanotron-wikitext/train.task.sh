#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
[[ -v PYTHONUNBUFFERED ]] || export PYTHONUNBUFFERED=1  # core: a line of log is seen when it is written
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export HF_DATASETS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export CUDA_CACHE_DISABLE=1  # alps network: compiled kernels must not be cached on Lustre
export MPICH_GPU_SUPPORT_ENABLED=0  # alps network: GPU-aware MPI beside NCCL deadlocks
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # alps network: one failing rank ends the others
[[ -v NCCL_DEBUG ]] || export NCCL_DEBUG=INFO  # alps network: the proof that Slingshot is used is read from these lines
[[ -v NCCL_DEBUG_SUBSYS ]] || export NCCL_DEBUG_SUBSYS=INIT,NET  # alps network: only the lines that the proof needs
export PYTHONNOUSERSITE=1  # environments:edf: packages in ~/.local would win over the image's, and home may be mounted
unset PYTHONHOME  # environments:edf: the host's Python is not the image's
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:nanotron: ranks that share cores burn them
export TOKENIZERS_PARALLELISM=false  # trainers:nanotron: its threads do not survive a fork
[[ -v HPC_CACHE ]] || export HPC_CACHE="${HPC_RUN}"/cache  # trainers:nanotron: the run's own place for what programs keep
[[ -v XDG_CACHE_HOME ]] || export XDG_CACHE_HOME="${HPC_RUN}"/cache  # trainers:nanotron: what libraries without a variable of their own keep in the home folder
[[ -v HF_HOME ]] || export HF_HOME="${HPC_RUN}"/cache/huggingface  # trainers:nanotron: the default is in the home folder, which is small
[[ -v TORCH_HOME ]] || export TORCH_HOME="${HPC_RUN}"/cache/torch  # trainers:nanotron: weights that torch fetches; home folders are small
[[ -v TORCH_EXTENSIONS_DIR ]] || export TORCH_EXTENSIONS_DIR="${HPC_RUN}"/cache/extensions  # trainers:nanotron: kernels compile at the first start; two users of one cache wait for each other
[[ -v TRITON_CACHE_DIR ]] || export TRITON_CACHE_DIR="${HPC_RUN}"/cache/triton  # trainers:nanotron: kernels compile at the first step; home folders are small and shared by all runs
[[ -v WANDB_DIR ]] || export WANDB_DIR="${HPC_RUN}"  # trainers:nanotron: where `hpctrain sync` looks for what was logged without a network
[[ -v WANDB_DATA_DIR ]] || export WANDB_DATA_DIR="${HPC_RUN}"/cache/wandb  # trainers:nanotron: artifacts that wait to be sent; the default is in the home folder
export CUDA_DEVICE_MAX_CONNECTIONS=1  # trainers:nanotron: nanotron asserts it: order of its streams
export PYTHONPATH="${HPC_SOURCE}"/src"${PYTHONPATH:+:$PYTHONPATH}"  # trainers:nanotron: nanotron itself, at the revision that the run names
export WANDB_MODE=offline  # run file: the run file sets it
export PYTHONPATH="$HPC_RUN/code/job.zip:$HPC_RUN/code/job.zip/hpctrain_job/hangs/hook${PYTHONPATH:+:$PYTHONPATH}"
cd "${HPC_SOURCE}"
exec python -m torch.distributed.run --nnodes "${HPC_NODES}" --node-rank "${HPC_NODE_RANK}" --nproc-per-node 4 --master-addr "${HPC_HEAD}" --master-port "${HPC_PORT}" run_train.py --config-file "${HPC_RUN}"/steps/train/nanotron.yaml
