#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
export PYTHONUNBUFFERED=1  # trainers:trl: the log shows the last line before a crash
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export HF_DATASETS_OFFLINE=1  # trainers:trl: everything was brought here before: a node without network must not try
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export http_proxy=http://10.63.2.48:3128/  # compute: GPU nodes reach the internet only through the site's proxy
export https_proxy=http://10.63.2.48:3128/  # compute: GPU nodes reach the internet only through the site's proxy
export no_proxy=localhost,127.0.0.1,.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16  # compute: GPU nodes reach the internet only through the site's proxy
export LD_LIBRARY_PATH=/opt/libfabric/lib:/opt/nccl/lib:/opt/aws-ofi-nccl/lib:/opt/cxi"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"  # olivia network: an image's own NCCL and libfabric do not know Slingshot; the host's are bound there
export NCCL_NET='AWS Libfabric'  # olivia network: without it NCCL falls back to TCP in silence; on one node it would only waste a network id
export NCCL_PROTO='^LL128'  # olivia network: LL128 with GPUDirect corrupts data on Slingshot, most of all on 8 nodes and more; HPE's author names GDRCopy as the cause
export FI_PROVIDER=cxi  # olivia network: libfabric must take the Slingshot provider and no other
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # olivia network: NCCL meets over the fast network
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1  # olivia network: rings may use different adapters on different nodes
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB  # olivia network: GPUDirect where GPU and adapter share a NUMA node
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1  # olivia network: registering host memory can deadlock with CUDA
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072  # olivia network: completion queues overflow at their usual size
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=2048  # olivia network: more operations in flight
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid  # olivia network: matching moves to software when the adapter's entries are used up
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd  # olivia network: the memhooks monitor can deadlock
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read  # olivia network: rendezvous reads instead of gets; needs the job's --network=disable_rdzv_get
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0  # olivia network: eager messages hang NCCL
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0  # olivia network: every message takes the rendezvous path
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0  # olivia network: every message takes the rendezvous path
export MPICH_GPU_SUPPORT_ENABLED=0  # olivia network: GPU-aware MPI beside NCCL deadlocks; CSCS found it on the same hardware
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # olivia network: one failing rank ends the others
[[ -v NCCL_DEBUG ]] || export NCCL_DEBUG=INFO  # olivia network: the proof that Slingshot is used is read from these lines
[[ -v NCCL_DEBUG_SUBSYS ]] || export NCCL_DEBUG_SUBSYS=INIT,NET  # olivia network: only the lines that the proof needs
export PATH=/user-software/bin"${PATH:+:$PATH}"  # environments:apptainer: python is the environment's
export VIRTUAL_ENV=/user-software  # environments:apptainer: tools look here for the active environment
export PYTHONNOUSERSITE=1  # environments:apptainer: packages in ~/.local would win over the environment's
unset PYTHONHOME  # environments:apptainer: another Python's standard library breaks this one
export RANK="${HPC_RANK}"  # trainers:trl: which process this is, as torch reads it
export LOCAL_RANK="${HPC_LOCAL_RANK}"  # trainers:trl: which GPU of the node is its own
export WORLD_SIZE="${HPC_WORLD}"  # trainers:trl: how many processes train together
export MASTER_ADDR="${HPC_HEAD}"  # trainers:trl: where rank 0 listens for the others
export MASTER_PORT="${HPC_PORT}"  # trainers:trl: derived from the job, so that two never meet
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:trl: ranks that share cores burn them
export TOKENIZERS_PARALLELISM=false  # trainers:trl: its threads do not survive a fork
export WANDB_PROJECT=olivia_test  # trainers:trl: train.trl.wandb_project
[[ -v WANDB_MODE ]] || export WANDB_MODE=offline  # trainers:trl: the key is not given, secrets = ["wandb"]: `hpctrain sync` sends it
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
