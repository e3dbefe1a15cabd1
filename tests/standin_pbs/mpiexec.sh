#!/bin/bash
# mpiexec of the stand-in, in the words of PALS or, with STANDIN_MPIEXEC=hydra, of Hydra: all ranks are processes here.
# It waits for every rank, whatever becomes of one, and passes signals on, as Hydra 5 was seen to.
if [[ $1 == --version ]]; then
  [[ ${STANDIN_MPIEXEC:-} == hydra ]] && echo "HYDRA build details:" || echo "mpiexec of the stand-in, as PALS"
  exit 0
fi
while [[ $1 == -* ]]; do
  case $1 in
    -n) ranks=$2 ;;
    --ppn) per=$2 ;;
    --depth | --cpu-bind) [[ ${STANDIN_MPIEXEC:-} != hydra ]] || { echo "unrecognized argument $1" >&2; exit 255; } ;;
    *) echo "unrecognized argument $1" >&2; exit 255 ;;
  esac
  shift 2
done
mapfile -t nodes < <(uniq "$PBS_NODEFILE")
((ranks <= per * ${#nodes[@]})) || { echo "not enough nodes" >&2; exit 255; }
pids=() code=0
# shellcheck disable=SC2317,SC2329  # a trap calls it
pass() { for pid in "${pids[@]}"; do kill -s "$1" "$pid" 2>/dev/null; done; }
trap 'pass USR1' USR1
trap 'pass TERM' TERM
for ((rank = 0; rank < ranks; rank++)); do
  STANDIN_NODE=${nodes[rank / per]} PMI_RANK=$rank PMI_SIZE=$ranks PMI_LOCAL_RANK=$((rank % per)) "$@" &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  while :; do
    wait "$pid"
    one=$?
    kill -0 "$pid" 2>/dev/null || break
  done
  if ((one > 128)); then # a trapped signal hides the rank's own code
    wait "$pid" 2>/dev/null
    last=$?
    ((last == 127)) || one=$last
  fi
  code=$((code | one))
done
exit "$code"
