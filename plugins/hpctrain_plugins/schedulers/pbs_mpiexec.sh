#!/bin/bash
# Start the ranks of a step with the site's mpiexec, in that one's words. The first rank that fails ends the others:
# mpiexec waits for those that speak no MPI, and they may wait for the dead one for ever.
# usage: mpiexec.sh PER_NODE RANKS CORES [WORDS FOR MPIEXEC...] bash SCRIPT   (in the run directory)
set -euo pipefail
# shellcheck source=/dev/null
. code/job.sh
hpc_signal='' hpc_child=''
trap 'hpc_forward USR1' USR1
trap 'hpc_forward TERM' TERM
failed=steps/$HPC_STEP/failed.$HPC_JOB.$HPC_ATTEMPT
code=0

if [[ $1 == member ]]; then # one rank: say on the shared disk that it failed
  shift
  hpc_wait "$@" || code=$?
  # one that saved after the warning and stopped (75) ends no other, which may still write
  [[ $code == 0 || $code$hpc_signal == 75USR1 ]] ||
    (set -C && echo "$code" >"$failed") 2>/dev/null || : # the first one's counts
  exit "$code"
fi

per=$1 ranks=$2 cores=$3
shift 3
words=(-n "$ranks" --ppn "$per")
case $(mpiexec --version 2>&1) in
  *HYDRA* | *Intel*MPI*) ;; # binds nothing by itself
  *"Open MPI"* | *OpenRTE* | *prte*)
    echo "hpctrain: $(command -v mpiexec) is Open MPI's, which starts ranks without their variables;" \
      "load the module of the site's own mpiexec (PALS or Hydra)" >&2
    exit 78
    ;;
  *"not found"*)
    echo "hpctrain: no mpiexec in PATH=$PATH: the cluster's facts lack the module that brings it" >&2
    exit 127
    ;;
  *) # PALS gives a rank one core where nobody says more
    [[ " $* " == *" --cpu-bind"* ]] || words+=(--depth "$cores" --cpu-bind depth)
    ;;
esac
# what comes last is the command; a step that failed in an earlier start leaves no word
words+=("${@:1:$#-2}" bash "$0" member "${@: -2}")
rm -f "$failed"
trap 'kill -s KILL "$hpc_child" 2>/dev/null || :' USR2
{
  until [[ -e $failed ]]; do
    kill -0 $$ || exit 0
    sleep 1
  done
  kill -s TERM $$
  sleep 10
  kill -s USR2 $$
} </dev/null >/dev/null 2>&1 &
watch=$!
hpc_wait mpiexec "${words[@]}" || code=$?
kill "$watch" 2>/dev/null || :
[[ ! -e $failed ]] || code=$(<"$failed") # mpiexec's own code mixes those of all ranks
exit "$code"
