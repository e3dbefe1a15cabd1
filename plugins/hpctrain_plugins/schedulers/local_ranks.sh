#!/bin/bash
# Start the ranks of a step on this machine; the first that fails ends the others.
# usage: ranks.sh PER_NODE WORLD COMMAND...
per=$1 world=$2 first=0 pids=()
shift 2
forward() { for pid in "${pids[@]}"; do kill -s "$1" "$pid" 2>/dev/null; done; }
trap 'forward USR1' USR1
trap 'forward TERM' TERM
for ((rank = 0; rank < world; rank++)); do
  HPC_RANK=$rank HPC_LOCAL_RANK=$((rank % per)) HPC_NODE_RANK=$((rank / per)) HPC_WORLD=$world "$@" &
  pids+=($!)
done
while ((${#pids[@]})); do
  wait -n # until a rank ends, or a signal was passed on
  for index in "${!pids[@]}"; do
    kill -0 "${pids[index]}" 2>/dev/null && continue
    wait "${pids[index]}"
    code=$?
    unset "pids[index]"
    ((code == 0 || first != 0)) && continue
    first=$code
    forward TERM
    { sleep 10; forward KILL; } & # a rank that waits for a dead one may hear nothing
  done
done
exit "$first"
