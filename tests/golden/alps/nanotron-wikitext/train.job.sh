#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=288
#SBATCH --gpus-per-node=4
#SBATCH --signal=B:USR1@120
#SBATCH --time=01:00:00
#SBATCH --output=logs/train.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=HOME,LANG,LOGNAME,USER
#SBATCH --partition=normal
# step train of nanotron-wikitext on alps, plan 051bf6fe; starts in the run directory
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
export HPC_CHECKPOINTS=/capstor/scratch/cscs/somebody/hpctrain/checkpoints/nanotron-wikitext/"${HPC_OWN}"
export HPC_BAD_NODES=/users/somebody/.local/state/hpctrain/nodes-alps-
hpc_python
mkdir -p "$HPC_CHECKPOINTS"
hpc_check_saves "${HPC_CHECKPOINTS}" '--name=(?P<step>\d+)' --last=model_config.json --pointer=latest.txt
hpc_watch_saves "${HPC_CHECKPOINTS}" '--name=(?P<step>\d+)' --last=model_config.json --pointer=latest.txt
export HPC_SOURCE="${HPC_RUN}"/source  # core: programs write beside their code, and the code itself serves other runs
[[ -v HF_DATASETS_CACHE ]] || export HF_DATASETS_CACHE=/iopsstor/scratch/cscs/somebody/hpctrain/assets/.datasets-"${EUID}"  # trainers:nanotron: what one run made of the data, the next one need not make again
{
  printf %s 'general:
  project: debug
  run: tiny_llama_%date_%jobid
  seed: 42
  step: null
  consumed_train_samples: null
  benchmark_csv_path: null
  ignore_sanity_checks: true
parallelism:
  dp: 2
  pp: 1
  tp: 4
  expert_parallel_size: 1
  pp_engine: 1f1b
  tp_mode: reduce_scatter
  tp_linear_async_communication: true
model:
  dtype: bfloat16
  ddp_bucket_cap_mb: 25
  make_vocab_size_divisible_by: 1
  init_method:
    std: 0.025
  model_config:
    is_llama_config: true
    hidden_act: silu
    hidden_size: 768
    intermediate_size: 1536
    initializer_range: 0.02
    max_position_embeddings: 512
    num_attention_heads: 12
    num_hidden_layers: 12
    num_key_value_heads: 12
    bos_token_id: 1
    eos_token_id: 2
    pad_token_id: null
    pretraining_tp: 1
    rms_norm_eps: 1.0e-05
    rope_scaling: null
    tie_word_embeddings: true
    use_cache: true
    vocab_size: 50257
optimizer:
  zero_stage: 1
  weight_decay: 0.01
  clip_grad: 1.0
  accumulate_grad_in_fp32: true
  learning_rate_scheduler:
    learning_rate: 0.001
    lr_warmup_steps: 150
    lr_warmup_style: linear
    lr_decay_style: cosine
    lr_decay_steps: null
    lr_decay_starting_step: null
    min_decay_lr: 1.0e-05
  optimizer_factory:
    name: adamW
    adam_beta1: 0.9
    adam_beta2: 0.95
    adam_eps: 1.0e-08
    torch_adam_is_fused: true
data_stages:
- name: stable training stage
  start_training_step: 1
  data:
    seed: 42
    num_loading_workers: 1
    dataset:
      hf_dataset_or_datasets: '
  hpc_json /iopsstor/scratch/cscs/somebody/hpctrain/assets/hub-1889bef9aa4f
  printf %s '
      hf_dataset_config_name: wikitext-103-v1
      hf_dataset_splits: train
      text_column_name: text
      dataset_overwrite_cache: false
      dataset_processing_num_proc_per_process: 32
tokenizer:
  tokenizer_name_or_path: '
  hpc_json /iopsstor/scratch/cscs/somebody/hpctrain/assets/hub-00d4de0d8383
  printf %s '
  tokenizer_revision: null
  tokenizer_max_length: null
tokens:
  sequence_length: 512
  train_steps: 1500
  micro_batch_size: 64
  batch_accumulation_per_replica: 1
  limit_test_batches: 0
  limit_val_batches: 0
  val_check_interval: -1
checkpoints:
  checkpoint_interval: 1500
  checkpoints_path: '
  hpc_json "${HPC_CHECKPOINTS}"
  printf %s '
  checkpoints_path_is_shared_file_system: false
  resume_checkpoint_path: '
  hpc_json "${HPC_CHECKPOINTS}"
  printf %s '
  save_initial_state: false
logging:
  iteration_step_info_interval: 1
  log_level: info
  log_level_replica: info
lighteval: null
profiler: null
'
} >steps/train/nanotron.yaml
hpc_source /iopsstor/scratch/cscs/somebody/hpctrain/assets/git-a8a443f7b6d5
hpc_fabric --nodes=2 --per-node=1 --on-slow=stop '--proof=NET/OFI Selected [Pp]rovider is cxi' '--refuse=Using network Socket|NET/OFI Selected [Pp]rovider is (?!cxi)|NET/OFI No eligible providers|network AWS Libfabric not found|Using internal network plugin'
mkdir -p /iopsstor/scratch/cscs/somebody/hpctrain/assets
mkdir -p /capstor/scratch/cscs/somebody/hpctrain/checkpoints
mkdir -p /iopsstor/scratch/cscs/somebody/hpctrain/env
mkdir -p /capstor/scratch/cscs/somebody/hpctrain/runs
hpc_require /iopsstor/scratch/cscs/somebody/ce-images/pytorch-24.04-py3-c932e661fb68.sqsh
hpc_private HF_DATASETS_CACHE /iopsstor/scratch/cscs/somebody/hpctrain/assets/.datasets-"${EUID}"
hpc_start srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=288 --kill-on-bad-exit=1 --wait=600 --environment=./steps/"${HPC_STEP}"/environment.toml bash steps/train/rank.sh
