#!/bin/bash
# A terminal inside a job that is held: what the job exported, then the way of every rank into the
# environment. Ends when its user leaves or when the job does.
# usage: attach.sh STEP   (in the run directory, on the job's first node)
set -euo pipefail
umask 077
step=$1 here=$PWD/steps/$1
# shellcheck disable=SC2317,SC2329  # a trap calls it
leave() {
  : >"$here/over"
  [[ -z ${watch:-} ]] || kill "$watch" 2>/dev/null || :
}
trap leave EXIT
{
  until [[ -e $here/exit ]]; do sleep 1; done
  kill -HUP "$(<"$here/attached")"
} </dev/null >/dev/null 2>&1 &
watch=$!
code=0
# shellcheck disable=SC2016  # expanded by the inner bash
bash --noprofile --norc -c '
  # What a container sets stays; the words of this second start of the scheduler do not.
  inner=${PATH:-}
  for name in ${!SLURM*}; do unset "$name"; done
  . "steps/$0/job.env"
  PATH+=${inner:+:$inner}
  echo "$$" >"steps/$0/attached"
  exec bash "steps/$0/rank.sh"' "$step" || code=$?
exit "$code"
