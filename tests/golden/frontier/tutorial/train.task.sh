#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export PYTHONUNBUFFERED=1  # trainers:trl: the log shows the last line before a crash
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export HF_DATASETS_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
HF_TOKEN=$(<"$HPC_SECRETS"/huggingface); export HF_TOKEN  # core: the run file names the secret huggingface
export WANDB_MODE=offline  # compute: compute nodes have no internet unless the site's proxy is switched on (facts.proxy)
export NCCL_NET=OFI  # frontier network: without it RCCL falls back to TCP in silence; the plugin answers to AWS Libfabric too, HPE's word; the site's is used. The network does not exist in jobs of one node
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # frontier network: RCCL meets over the fast network; if it hangs, hsn0 alone
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1  # frontier network: rings may use different adapters on different nodes
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB  # frontier network: GPUDirect where GPU and adapter share a NUMA node
[[ -v HSA_FORCE_FINE_GRAIN_PCIE ]] || export HSA_FORCE_FINE_GRAIN_PCIE=1  # frontier network: peer access to GPU memory over PCIe
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=kdreg2  # frontier network: the site's own since May 2025, where HPE says userfaultfd; memhooks deadlocks
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1  # frontier network: registering host memory can deadlock
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072  # frontier network: completion queues overflow at their usual size
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=2048  # frontier network: more operations in flight
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid  # frontier network: matching moves to software when the adapter's entries are used up
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read  # frontier network: rendezvous reads instead of gets; needs the job's --network=disable_rdzv_get
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0  # frontier network: eager messages hang RCCL
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0  # frontier network: every message takes the rendezvous path
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0  # frontier network: every message takes the rendezvous path
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # frontier network: one failing rank ends the others
[[ -v NCCL_DEBUG ]] || export NCCL_DEBUG=INFO  # frontier network: the proof that Slingshot is used is read from these lines
[[ -v NCCL_DEBUG_SUBSYS ]] || export NCCL_DEBUG_SUBSYS=INIT,NET  # frontier network: only the lines that the proof needs
[[ -v ROCM_HOME ]] || export ROCM_HOME=/opt/rocm-7.1.1  # frontier: extensions look here for hipcc and its headers
[[ -v CC ]] || export CC=gcc  # frontier: torch's extensions are not compiled by Cray's wrappers
[[ -v CXX ]] || export CXX=g++  # frontier: torch's extensions are not compiled by Cray's wrappers
export LOCAL_RANK=0  # frontier: each rank sees its own GCD alone, as number 0
[[ -v DS_ENV_FILE ]] || export DS_ENV_FILE="${HPC_RUN}"/steps/"${HPC_STEP}"/deepspeed.env  # frontier: DeepSpeed's launcher would read ~/.deepspeed_env, which all of your jobs share
[[ -v TORCH_EXTENSIONS_DIR ]] || export TORCH_EXTENSIONS_DIR="${HPC_RUN}"/cache/extensions  # trainers:trl: kernels compile at the first start; two users of one cache wait for each other
export PATH=/lustre/orion/abc123/proj-shared/hpctrain/env/conda-2519c842f46d/bin"${PATH:+:$PATH}"  # environments:conda: python is the environment's
export PYTHONNOUSERSITE=1  # environments:conda: packages in ~/.local would win over the environment's
unset PYTHONHOME  # environments:conda: another Python's standard library breaks this one
export CONDA_PREFIX=/lustre/orion/abc123/proj-shared/hpctrain/env/conda-2519c842f46d  # environments:conda: tools look here for the prefix
unset VIRTUAL_ENV  # environments:conda: another environment's pip would install there
export RANK="${HPC_RANK}"  # trainers:trl: which process this is, as torch reads it
export WORLD_SIZE="${HPC_WORLD}"  # trainers:trl: how many processes train together
export MASTER_ADDR="${HPC_HEAD}"  # trainers:trl: where rank 0 listens for the others
export MASTER_PORT="${HPC_PORT}"  # trainers:trl: derived from the job, so that two never meet
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:trl: ranks that share cores burn them
export TOKENIZERS_PARALLELISM=false  # trainers:trl: its threads do not survive a fork
[[ -v HPC_CACHE ]] || export HPC_CACHE="${HPC_RUN}"/cache  # trainers:trl: the run's own place for what programs keep
[[ -v XDG_CACHE_HOME ]] || export XDG_CACHE_HOME="${HPC_RUN}"/cache  # trainers:trl: what libraries without a variable of their own keep in the home folder
[[ -v HF_HOME ]] || export HF_HOME="${HPC_RUN}"/cache/huggingface  # trainers:trl: the default is in the home folder, which is small
[[ -v TORCH_HOME ]] || export TORCH_HOME="${HPC_RUN}"/cache/torch  # trainers:trl: weights that torch fetches; home folders are small
[[ -v WANDB_DIR ]] || export WANDB_DIR="${HPC_RUN}"  # trainers:trl: where `hpctrain sync` looks for what was logged without a network
[[ -v WANDB_DATA_DIR ]] || export WANDB_DATA_DIR="${HPC_RUN}"/cache/wandb  # trainers:trl: artifacts that wait to be sent; the default is in the home folder
export PYTHONPATH="$HPC_RUN/code/job.zip:$HPC_RUN/code/job.zip/hpctrain_job/hangs/hook${PYTHONPATH:+:$PYTHONPATH}"
bash "${HPC_RUN}"/steps/"${HPC_STEP}"/deepspeed_env.sh PATH LD_LIBRARY_PATH ROCM_HOME TORCH_EXTENSIONS_DIR CC CXX HF_HUB_OFFLINE HF_DATASETS_OFFLINE TRANSFORMERS_OFFLINE 'FI_*' 'HSA_*' 'MIOPEN_*' 'NCCL_*' 'RCCL_*' 'TORCH_NCCL_*' TRITON_CACHE_DIR CONDA_PREFIX HF_HOME OMP_NUM_THREADS
exec python -m hpctrain_trl --config "${HPC_RUN}"/steps/train/trl.json
