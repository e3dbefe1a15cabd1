#!/bin/bash
# Start a job of this machine, detached from its caller, and print its id.
# usage: submit.sh STEP TAG LIMIT NOTICE NAMES [AFTER]   (in the run directory; times in seconds)
set -euo pipefail
umask 077
step=$1 tag=$2
[[ -v HOME ]] || export HOME=~
jobs=${HPC_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/hpctrain/jobs}
mkdir -p "$jobs" logs
clean=("HPC_STATE=$jobs")
for name in PATH HOME USER LOGNAME LANG TMPDIR ${5//,/ }; do
  [[ -v $name ]] && clean+=("$name=${!name}")
done
session=$(command -v setsid || :) # else job control gives it at least a group of its own
set -m
# Not as words of env: every user of the machine sees command lines, and an address may hold a login.
# shellcheck disable=SC2016
import='while IFS= read -rd "" variable <&3; do export "$variable"; done; exec bash "$@" 3<&-'
# shellcheck disable=SC2086  # empty where there is no setsid
$session nohup env -i "$BASH" -c "$import" bash "steps/$step/runner.sh" "$@" \
  3< <(printf '%s\0' "${clean[@]}") </dev/null >>"logs/$step.log" 2>&1 &
for ((try = 0; try < 400; try++)); do
  [[ -e $jobs/${tag:0:12}.job ]] && { echo "${tag:0:12}"; exit 0; }
  sleep 0.05
done
echo "the job did not start within 20 s; see logs/$step.log" >&2
exit 1
