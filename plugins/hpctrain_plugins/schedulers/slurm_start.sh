# What job.sh does with Slurm alone; sourced by it.
# shellcheck shell=bash

# srun ends with this code when it fails itself, not what it started
export SLURM_EXIT_ERROR=71
slurm_again=0

# One file to the same path on every node of the job, from node to node; their folder must be there.
hpc_broadcast() { sbcast --preserve --force -- "$1" "$2"; }

# Whether to start the ranks once more: srun failed before any of them began, as it does when the
# controller is silent. Says yes three times, each when the controller answers, which it may take long to do.
hpc_again() {
  [[ $1 == "$SLURM_EXIT_ERROR" && ! -e steps/$HPC_STEP/began ]] || return
  ((++slurm_again <= 3)) || return
  echo "hpctrain: nothing began; waiting for the controller before another srun" >&2
  local until=$((SECONDS + 600))
  until scontrol show job "$HPC_JOB" >/dev/null 2>&1; do
    if ((SECONDS > until)) || [[ $hpc_signal ]]; then return 1; fi
    sleep 5
  done
}
