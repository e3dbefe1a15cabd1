# What job.sh does with PBS alone; sourced by it.
# shellcheck shell=bash

hpc_attempt() {  # how often this job was started before: nothing in its environment says so, only qstat
  local count
  count=$(timeout 20 qstat -f "$PBS_JOBID" 2>/dev/null | sed -n 's/^ *run_count = \([0-9]*\)$/\1/p') || :
  echo $((${count:-1} > 0 ? ${count:-1} - 1 : 0))
}

hpc_head() {  # the first node, as the others reach it: its name with the suffix of the fast network
  local first
  IFS= read -r first <"$PBS_NODEFILE"
  echo "$first$1"
}

# Of a chain of jobs. PBS does not say to a job why it ends it, and a waiting job cannot be kept away from nodes.
hpc_nodes() { sort -u "$PBS_NODEFILE"; }

hpc_drop() { timeout 20 qdel "$@"; }
