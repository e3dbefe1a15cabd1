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

# Why a job ends. Slurm writes why it ends a job into the job's log, before the shell hears of it.
hpc_said() {
  local line
  line=$(hpc_own_log | grep -a "JOB $HPC_JOB ON .* CANCELLED AT" | tail -n 1) || return 0
  case $line in
    *"DUE TO TIME LIMIT"*) echo limit ;;
    *"DUE TO PREEMPTION"* | *"DUE TO JOB REQUEUE"*) echo taken ;;
    *"DUE TO NODE FAILURE"*) echo node ;;
    *) echo cancelled ;;
  esac
}

# Whether this job will not be queued again under its id.
hpc_final() { [[ $(hpc_said) == @(limit|cancelled) ]]; }

# Of a chain of jobs.
hpc_nodes() { scontrol show hostnames "$SLURM_JOB_NODELIST"; }

hpc_lost_nodes() {  # those of this job's nodes that the controller holds for lost, or srun named in the log
  local named
  named=$(hpc_own_log | grep -aoP '(?:Node failure on|launch for StepId=\S+ failed on node) \K[\w.-]+') || :
  { echo "$named"; timeout 20 sinfo --noheader --Node --nodes="$SLURM_JOB_NODELIST" \
    --states=down,fail,no_respond --format=%N; } | sort -u
}

hpc_leave_out() {  # NODE,NODE NODES: what is started from here on stays off these; the first of the others leads
  local node
  hpc_left_out=$1
  for node in $2; do
    [[ ,$1, == *",$node,"* ]] || break
  done
  HPC_HEAD=$node${HPC_HEAD#"${2%%[[:space:]]*}"}
  # shellcheck disable=SC2317,SC2329  # job.sh calls it
  srun() { exec /usr/bin/env srun --exclude="$hpc_left_out" "$@"; }  # job.sh starts it beside itself
}

hpc_avoid() {  # NODE,NODE JOB...: a user may change which nodes a waiting job stays away from
  local nodes=$1 job
  shift
  for job; do timeout 20 scontrol update JobId="$job" ExcNodeList="$nodes"; done
}

hpc_requeue() {  # JOB: this one, again under its id
  trap '' TERM # it is ended as soon as that is asked
  timeout 20 scontrol requeue "$1" || return
  # It would wait for two minutes (cred_expire in https://slurm.schedmd.com/slurm.conf.html). A start in the past
  # when the job has ended is overwritten by that, one in the future is kept: Slurm 24.11
  sleep 0.5
  timeout 20 scontrol update JobId="$1" StartTime=now+15seconds || :
}

hpc_leave() {  # this job, from another node than its first; not one that is queued again
  local running
  running=$(timeout 20 squeue --noheader --jobs="$HPC_JOB" --states=RUNNING --format=%i) || running=$HPC_JOB
  [[ ! $running ]] || timeout 20 scancel --quiet "$HPC_JOB"
}

hpc_drop() { timeout 20 scancel --quiet --state=PENDING "$@"; }
