#!/bin/bash
# The whole life of a job of this machine; leads the process group that cancelling ends.
# Files in $HPC_STATE: ID.job (who runs it), .run (began), .late (time limit), .end (exit code).
# usage: runner.sh STEP TAG LIMIT NOTICE NAMES [AFTER]
set -uo pipefail
umask 077
step=$1 tag=$2 limit=$3 notice=$4 after=${6:-}
jobs=$HPC_STATE
export HPC_JOB=${tag:0:12}
mine=$jobs/$HPC_JOB

born() { # when a process started, so that a number used again is not taken for it
  local line
  read -r line <"/proc/$1/stat" 2>/dev/null || return 1
  line=${line##*) }
  [[ $line != Z* ]] || return 1
  # shellcheck disable=SC2086
  set -- $line
  echo "${20}"
}

over() {
  local pid start
  [[ ! -e $jobs/$1.end ]] || return 0
  { read -r pid && read -r start; } 2>/dev/null <"$jobs/$1.job" || return 0
  [[ $(born "$pid") != "$start" ]]
}

finish() { # the end is known before the group, with all that a job left running, is gone
  echo "$1" >"$mine.end.$$"
  mv "$mine.end.$$" "$mine.end"
  kill -KILL -- "-$$"
}

printf '%s\n' "$$" "$(born $$)" "$tag" "$step" "$PWD" >"$mine.$$"
ln "$mine.$$" "$mine.job" 2>/dev/null # one wins; a second submission of a tag ends here
claimed=$?
rm -f "$mine.$$"
((claimed == 0)) || exit 0

for edge in ${after//,/ }; do
  before=${edge#*:}
  until over "$before"; do sleep 0.1; done
  code=$(cat "$jobs/$before.end" 2>/dev/null || echo lost)
  if [[ $edge == afterok:* && $code != 0 ]]; then
    echo "step $step does not run: what it waited for ended with $code"
    : >"$mine.cancelled"
    finish 1
  fi
done

bash "steps/$step/job.sh" "$tag" &
child=$!
trap 'kill -s USR1 "$child" 2>/dev/null' USR1
trap 'kill -s TERM "$child" 2>/dev/null' TERM
date +%s >"$mine.run"
if ((limit > 0)); then
  {
    sleep $((limit - notice))
    kill -s USR1 "$child"
    sleep "$notice"
    : >"$mine.late"
    kill -s TERM "$child"
    sleep 10
    finish 143
  } &
fi
while :; do
  code=0
  wait "$child" || code=$?
  kill -0 "$child" 2>/dev/null || break
done
if ((code > 128)); then # a trapped signal hides the child's code, but bash remembers it
  code=0
  wait "$child" 2>/dev/null || code=$?
fi
finish "$code"
