#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
[[ -v PYTHONUNBUFFERED ]] || export PYTHONUNBUFFERED=1  # core: a line of log is seen when it is written
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export HF_DATASETS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export NCCL_NET='AWS Libfabric'  # alps network: without it NCCL falls back to TCP in silence: 5 instead of 123 GB/s on two nodes
export NCCL_PROTO='^LL128'  # alps network: LL128 is slower here, and corrupts data on the same hardware elsewhere
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3  # alps network: NCCL meets over the fast network; as on the other Slingshot machines
export NCCL_NET_GDR_LEVEL=PHB  # alps network: GPUDirect where GPU and adapter share a NUMA node
export NCCL_CROSS_NIC=1  # alps network: rings may use different adapters on different nodes; the Container Engine has 0 since June 2026
export FI_CXI_DEFAULT_CQ_SIZE=131072  # alps network: completion queues overflow at their usual size
export FI_CXI_DEFAULT_TX_SIZE=16384  # alps network: more operations in flight; HPE says 2048, the site's own value is used
export FI_CXI_DISABLE_HOST_REGISTER=1  # alps network: registering host memory can deadlock
export FI_CXI_RX_MATCH_MODE=software  # alps network: the adapter's match entries run out; HPE says hybrid, the site's own value is used
export FI_MR_CACHE_MONITOR=userfaultfd  # alps network: the memhooks monitor can deadlock
export FI_CXI_RDZV_EAGER_SIZE=0  # alps network: the site's way around hangs: no eager messages
export FI_CXI_RDZV_THRESHOLD=0  # alps network: the site's way around hangs: every message takes the rendezvous path
export FI_CXI_RDZV_GET_MIN=0  # alps network: the site's way around hangs: every message takes the rendezvous path
export CUDA_CACHE_DISABLE=1  # alps network: compiled kernels must not be cached on Lustre
export MPICH_GPU_SUPPORT_ENABLED=0  # alps network: GPU-aware MPI beside NCCL deadlocks
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # alps network: one failing rank ends the others
[[ -v NCCL_DEBUG ]] || export NCCL_DEBUG=INFO  # alps network: the proof that Slingshot is used is read from these lines
[[ -v NCCL_DEBUG_SUBSYS ]] || export NCCL_DEBUG_SUBSYS=INIT,NET  # alps network: only the lines that the proof needs
export PATH=/path/to/your/environment/bin"${PATH:+:$PATH}"  # environments:ready: python is the environment's
export VIRTUAL_ENV=/path/to/your/environment  # environments:ready: tools look here for the active environment
export PYTHONNOUSERSITE=1  # environments:ready: packages in ~/.local would win over the environment's
unset PYTHONHOME  # environments:ready: another Python's standard library breaks this one
export RANK="${HPC_RANK}"  # trainers:command: which process this is, as torch reads it
export LOCAL_RANK="${HPC_LOCAL_RANK}"  # trainers:command: which GPU of the node is its own
export WORLD_SIZE="${HPC_WORLD}"  # trainers:command: how many processes train together
export MASTER_ADDR="${HPC_HEAD}"  # trainers:command: where rank 0 listens for the others
export MASTER_PORT="${HPC_PORT}"  # trainers:command: derived from the job, so that two never meet
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:command: ranks that share cores burn them
export PYTHONPATH="$HPC_RUN/code/job.zip${PYTHONPATH:+:$PYTHONPATH}"
ls -L /path/to/your/environment/bin/python3 > /dev/null
cd /iopsstor/scratch/cscs/somebody/hpctrain/assets/file-d08f5ab72e9a
exec python allreduce.py --mebibytes 256
