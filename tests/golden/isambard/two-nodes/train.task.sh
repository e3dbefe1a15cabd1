#!/bin/bash
set -euo pipefail
cd "$HPC_RUN"
[[ -v PYTHONUNBUFFERED ]] || export PYTHONUNBUFFERED=1  # core: a line of log is seen when it is written
[[ -v NO_COLOR ]] || export NO_COLOR=1  # core: logs hold no escape codes
[[ -v TQDM_MININTERVAL ]] || export TQDM_MININTERVAL=30  # core: a bar in a log is one line every 30 s
export HF_HUB_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export HF_DATASETS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export TRANSFORMERS_OFFLINE=1  # core: steps inside the environment work from what was fetched before
export NCCL_NET='AWS Libfabric'  # isambard network: without it NCCL falls back to TCP in silence: 2.3 instead of 163 GB/s on two nodes; this plugin answers to no other name
export FI_PROVIDER=cxi  # isambard network: libfabric must take the Slingshot provider and no other
export NCCL_PROTO='^LL128'  # isambard network: LL128 with GPUDirect corrupts data on Slingshot (NVIDIA/nccl issue 2001, measured by NRIS on the same hardware)
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn  # isambard network: NCCL meets over the fast network; a prefix of all four adapters
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB  # isambard network: GPUDirect where GPU and adapter share a NUMA node
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1  # isambard network: rings may use different adapters on different nodes
[[ -v NCCL_MIN_NCHANNELS ]] || export NCCL_MIN_NCHANNELS=4  # isambard network: one channel for each adapter
[[ -v NCCL_GDRCOPY_ENABLE ]] || export NCCL_GDRCOPY_ENABLE=1  # isambard network: small copies without a kernel launch
[[ -v NCCL_NET_FORCE_FLUSH ]] || export NCCL_NET_FORCE_FLUSH=0  # isambard network: the coherent link of GH200 makes the flush needless; the older page lacks it
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072  # isambard network: completion queues overflow at their usual size
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=2048  # isambard network: more operations in flight; the older page says 1024, and 16384 used up the adapter's credits
[[ -v FI_CXI_DISABLE_NON_INJECT_MSG_IDC ]] || export FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1  # isambard network: the site's own value
[[ -v FI_HMEM_CUDA_USE_GDRCOPY ]] || export FI_HMEM_CUDA_USE_GDRCOPY=1  # isambard network: small copies without a kernel launch
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1  # isambard network: registering host memory hangs
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd  # isambard network: the memhooks monitor can deadlock
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid  # isambard network: matching moves to software when the adapter's entries are used up; a launcher of Geodesic's says soft, which halved its hangs at a third of the speed
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read  # isambard network: rendezvous reads instead of gets; needs the job's --network=disable_rdzv_get
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0  # isambard network: eager messages hang NCCL
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0  # isambard network: every message takes the rendezvous path
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0  # isambard network: every message takes the rendezvous path
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # isambard network: one failing rank ends the others
[[ -v NCCL_DEBUG ]] || export NCCL_DEBUG=INFO  # isambard network: the proof that Slingshot is used is read from these lines
[[ -v NCCL_DEBUG_SUBSYS ]] || export NCCL_DEBUG_SUBSYS=INIT,NET  # isambard network: only the lines that the proof needs
export CC=/usr/bin/gcc-12  # isambard: the system's gcc is 7.5, which torch's headers refuse
export CXX=/usr/bin/g++-12  # isambard: the system's gcc is 7.5, which torch's headers refuse
export CUDAHOSTCXX=/usr/bin/g++-12  # isambard: the system's gcc is 7.5, which torch's headers refuse
export TORCH_CUDA_ARCH_LIST=9.0  # isambard: a GH200 calls itself 90a, which torch's builder of extensions cannot read
export PATH=/projectdir/hpctrain/env/uv-8456335b182c/bin"${PATH:+:$PATH}"  # environments:uv: python is the environment's
export VIRTUAL_ENV=/projectdir/hpctrain/env/uv-8456335b182c  # environments:uv: tools look here for the active environment
export PYTHONNOUSERSITE=1  # environments:uv: packages in ~/.local would win over the environment's
unset PYTHONHOME  # environments:uv: another Python's standard library breaks this one
export LD_PRELOAD=/projectdir/hpctrain/env/uv-8456335b182c/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2  # isambard: torch 2.9.0 was built with NCCL 2.27.5: the environment's own, whatever a module brings
export RANK="${HPC_RANK}"  # trainers:command: which process this is, as torch reads it
export LOCAL_RANK="${HPC_LOCAL_RANK}"  # trainers:command: which GPU of the node is its own
export WORLD_SIZE="${HPC_WORLD}"  # trainers:command: how many processes train together
export MASTER_ADDR="${HPC_HEAD}"  # trainers:command: where rank 0 listens for the others
export MASTER_PORT="${HPC_PORT}"  # trainers:command: derived from the job, so that two never meet
[[ -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=1  # trainers:command: ranks that share cores burn them
[[ -v HPC_CACHE ]] || export HPC_CACHE="${HPC_RUN}"/cache  # trainers:command: the run's own place for what programs keep
[[ -v XDG_CACHE_HOME ]] || export XDG_CACHE_HOME="${HPC_RUN}"/cache  # trainers:command: what libraries without a variable of their own keep in the home folder
[[ -v HF_HOME ]] || export HF_HOME="${HPC_RUN}"/cache/huggingface  # trainers:command: the default is in the home folder, which is small
[[ -v TORCH_HOME ]] || export TORCH_HOME="${HPC_RUN}"/cache/torch  # trainers:command: weights that torch fetches; home folders are small
[[ -v TORCH_EXTENSIONS_DIR ]] || export TORCH_EXTENSIONS_DIR="${HPC_RUN}"/cache/extensions  # trainers:command: kernels compile at the first start; two users of one cache wait for each other
[[ -v WANDB_DIR ]] || export WANDB_DIR="${HPC_RUN}"  # trainers:command: where `hpctrain sync` looks for what was logged without a network
[[ -v WANDB_DATA_DIR ]] || export WANDB_DATA_DIR="${HPC_RUN}"/cache/wandb  # trainers:command: artifacts that wait to be sent; the default is in the home folder
export PYTHONPATH="$HPC_RUN/code/job.zip:$HPC_RUN/code/job.zip/hpctrain_job/hangs/hook${PYTHONPATH:+:$PYTHONPATH}"
ls -L /projectdir/hpctrain/env/uv-8456335b182c/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2 > /dev/null
cd "${HPC_SOURCE}"
exec python regression.py --steps 500
