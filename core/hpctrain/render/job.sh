# What every job script shares; sourced by steps/*/job.sh, which starts in the run directory.
# shellcheck shell=bash

hpc_module() {  # module files read unset variables and may return non-zero without failing
  if ! type module >/dev/null 2>&1; then
    set +eu
    # shellcheck disable=SC1091
    . /etc/profile
    set -eu
  fi
  set +u
  if ! module "$@"; then
    echo "hpctrain: module $* failed" >&2
    set -u
    return 1
  fi
  set -u
  [[ ${HPC_PYTHON:-/} == /* ]] || hpc_python
}

hpc_python() {  # scripts of another machine look for a Python that is new enough, again with each module
  for HPC_PYTHON in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    hpc_lacks=''
    "$HPC_PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break
    HPC_PYTHON=python3 hpc_lacks="no Python from 3.10 on is in PATH on $(hostname)"
  done
  export HPC_PYTHON
}

hpc_port() {  # the same on every node, another one after a requeue, below the ephemeral range
  local sum
  sum=$(printf '%s' "$HPC_JOB.$HPC_ATTEMPT.$HPC_STEP" | cksum)
  echo $((12000 + ${sum%% *} % 19000))
}

hpc_json() {  # a string as JSON; the paths we write hold no control characters
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

hpc_record() {  # the last attempt's end, complete or not there
  local code=$1 file=steps/$HPC_STEP/exit
  printf '{"v":1,"job":"%s","attempt":%s,"code":%s,"signal":"%s","at":"%s"}\n' \
    "$HPC_JOB" "$HPC_ATTEMPT" "$code" "$hpc_signal" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$file.$$"
  mv -f "$file.$$" "$file"
}

hpc_note() {  # what the run cost: when a job of the step began, and when and how it ended; only ever added
  printf '{"v":1,"event":"%s","job":"%s","attempt":%s,"nodes":%s,"code":%s,"at":"%s"}\n' \
    "$1" "$HPC_JOB" "$HPC_ATTEMPT" "${HPC_NODES:-1}" "${2:-null}" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
    >>"steps/$HPC_STEP/jobs.jsonl" || :
}

hpc_claim() {  # the first job with a tag does the step; a second one, of a lost answer, ends at once
  hpc_tag=$1
  [[ $hpc_tag ]] || return 0
  local claim=steps/$HPC_STEP/claim
  echo "$HPC_JOB" >"$claim.$HPC_JOB"
  ln "$claim.$HPC_JOB" "$claim.$hpc_tag" 2>/dev/null || :
  if [[ -e $claim.$hpc_tag && $(<"$claim.$hpc_tag") != "$HPC_JOB" ]]; then
    echo "job $(<"$claim.$hpc_tag") does this already"
    exit 0
  fi
}

hpc_notice() {  # USR1 to this job when its shell is so many seconds old: the ranks save before the time limit
  [[ ${hpc_tag:-} ]] || return 0  # not submitted, so the time limit is another job's
  local at=$1 left
  {
    until left=$((at - SECONDS)) && ((left <= 0)); do
      kill -0 $$ || exit 0
      sleep $((left < 5 ? left : 5))
    done
    kill -s USR1 $$
  } </dev/null >/dev/null 2>&1 &
  hpc_timer=$!
}

hpc_judge() {  # asks what an event means for the chain, and does it; without an answer its next job goes on
  local told verb words event=$1
  shift
  told=$(PYTHONPATH=$HPC_RUN/code/job.zip "$HPC_PYTHON" -m hpctrain_job.attempts "$event" --run="$HPC_RUN" \
    --step="$HPC_STEP" --checkpoints="$HPC_CHECKPOINTS" --job="$HPC_JOB" --stop="$HPC_RUN/stop" \
    ${HPC_STOP_FILE:+"--stop=$HPC_STOP_FILE"} "$@") || { echo "hpctrain: cannot decide what follows in the chain; its next job goes on" >&2; return 0; }
  while read -r verb words; do
    case $verb in
      drop | avoid | requeue) # shellcheck disable=SC2086  # ids of jobs, one a word
        "hpc_$verb" $words || :
        ;;
      leave)
        echo "hpctrain: nothing to do: $words"
        trap - EXIT
        hpc_quiet
        hpc_note ended 0
        exit 0
        ;;
    esac
  done <<<"$told"
}

hpc_chain_begin() {  # this job is one of a chain: what its judge says, and a watch for the stop file
  [[ ${hpc_tag:-} ]] || return 0  # not submitted, so nothing follows
  local nodes
  nodes=$(hpc_nodes) || nodes=
  hpc_judge begin --nodes="$nodes"
  hpc_chained=yes
  {
    until [[ -e $HPC_RUN/stop || ( $HPC_STOP_FILE && -e $HPC_STOP_FILE ) ]]; do
      kill -0 $$ || exit 0
      sleep "${HPC_STOP_POLL:-20}"
    done
    echo "hpctrain: a stop file is there: saving" >&2
    kill -s USR1 $$
  } </dev/null &
  hpc_watch=$!
}

hpc_keeping() {  # ACTION [PREFIX…]: check, watch, retain or finish with the checkpoints of this training
  "${@:2}" env PYTHONPATH="$HPC_RUN/code/job.zip" "$HPC_PYTHON" -m hpctrain_job.keeping "$1" "${hpc_saves[@]}"
}

hpc_saves=()

hpc_check_saves() {  # before the ranks: what is damaged is set aside; where all of it is, there is nothing to train
  local code=0
  hpc_saves=("$@")
  hpc_keeping check || code=$?
  if ((code == 78)); then
    : >"steps/$HPC_STEP/nothing-whole"
    exit 78
  fi
  ((code)) || export HPC_CHECKED=1
}

hpc_watch_saves() {  # beside the ranks: a manifest for each checkpoint, and the old ones dropped
  hpc_saves=("$@")
  hpc_keeping watch exec </dev/null &
  hpc_keeper=$!
}

hpc_own_log() { tail -c "+$((hpc_log_from + 1))" "logs/$HPC_STEP.log" | tail -n 1000; }  # of this attempt

hpc_chain_end() {  # how this attempt ended, with what the scheduler says of it
  local code=$1 reason='' lost=''
  [[ -z $hpc_signal ]] || reason=$(hpc_said) || reason=
  ((code == 0 || code == 75)) || lost=$(hpc_lost_nodes) || lost=
  [[ ! -e ${HPC_GUARDS:-}/over ]] || read -r _ lost <"$HPC_GUARDS/over"
  hpc_judge end --code="$code" --signal="$hpc_signal" --reason="$reason" --nodes="$lost"
}

# Whether a job that was told to end does so for good, where its scheduler can say that.
type hpc_final >/dev/null 2>&1 || hpc_final() { return 1; }

# What a scheduler does for a chain, where it can: its word for why this job ends (cancelled, limit, taken, node),
# this job's nodes, those of them that failed; waiting jobs kept away from nodes, or taken out of the queue; this
# job queued again, or ended from another of its nodes.
type hpc_said >/dev/null 2>&1 || hpc_said() { :; }
type hpc_nodes >/dev/null 2>&1 || hpc_nodes() { :; }
type hpc_lost_nodes >/dev/null 2>&1 || hpc_lost_nodes() { :; }
type hpc_avoid >/dev/null 2>&1 || hpc_avoid() { :; }
type hpc_leave_out >/dev/null 2>&1 || hpc_leave_out() { echo "hpctrain: this scheduler cannot leave out nodes" >&2; }
type hpc_drop >/dev/null 2>&1 || hpc_drop() { :; }
type hpc_leave >/dev/null 2>&1 || hpc_leave() { :; }
type hpc_requeue >/dev/null 2>&1 || hpc_requeue() { echo "hpctrain: to resume: hpctrain continue" >&2; }

hpc_quiet() {  # ends what runs beside the ranks
  local pid
  for pid in ${hpc_tail:-} ${hpc_timer:-} ${hpc_watch:-} ${hpc_keeper:-}; do kill "$pid" 2>/dev/null || true; done
}

hpc_notify() {  # the program of [resources] notify, last of all: what becomes of it changes nothing
  local events=([0]="done" [75]="saved")
  HPC_EVENT=${events[$1]:-failed} HPC_CODE=$1 timeout -k 5 30 "${@:2}" </dev/null || echo "hpctrain: notify: $2: code $?" >&2
}

hpc_end() {
  local code=$? step=steps/$HPC_STEP
  trap - EXIT
  hpc_quiet
  [[ -z ${WORK:-} ]] || hpc_abandon || true
  # a job that was told to end may be queued again under its id, and then needs its tokens
  [[ -z ${HPC_SECRETS:-} || ${hpc_chained:-} ]] || { [[ $hpc_signal == TERM ]] && ! hpc_final; } \
    || rm -rf -- "$HPC_SECRETS"
  # queued again it would take the same slow network: no signal, and the code of a setting that is wrong
  if [[ -e $step/fabric && $(<"$step/fabric") == refused:* ]]; then code=78 hpc_signal=; fi
  # its watch ended it: hpctrain_job.attempts knows the code
  if [[ -e $step/hung && $code != 0 && -z $hpc_signal ]]; then code=79; fi
  [[ $code != 0 ]] || : >"$step/finished"
  hpc_record "$code"
  hpc_note ended "$code"
  if [[ ${HPC_BAD_NODES:-} && ! ${hpc_chained:-} && $code != 0 && $code != 75 ]]; then
    PYTHONPATH=$HPC_RUN/code/job.zip "$HPC_PYTHON" -m hpctrain_job.bad_nodes --step="$HPC_RUN/$step" \
      --job="$HPC_JOB" --lost="$(hpc_lost_nodes)" || true
  fi
  # what is older than [checkpoint] keep goes before anybody asks whether there is room for another one
  if [[ ${hpc_keeper:-} && $hpc_signal != TERM && $code != 0 && $code != 75 ]]; then
    hpc_keeping retain timeout 60 || true
  fi
  if [[ ${hpc_chained:-} ]]; then
    hpc_chain_end "$code" || true
    # the next job of the chain needs the same tokens
    [[ -z ${HPC_SECRETS:-} || ! ( -e $step/ended || -e $step/finished ) ]] || rm -rf -- "$HPC_SECRETS"
  fi
  # the last one, which no later look would find; another attempt makes up for it
  if [[ ${hpc_keeper:-} && $hpc_signal != TERM && ( $code == 0 || $code == 75 ) ]]; then
    hpc_keeping finish timeout 60 || true
  fi
  [[ ! ${hpc_notified:-} ]] || hpc_notify "$code" "${hpc_notified[@]}"
  exit "$code"
}

hpc_forward() {  # bash runs a trap only between commands, so the ranks run beside us and we wait
  hpc_signal=$1
  if [[ ${HPC_GUARDS:-} ]]; then # they pass it on: a starter may be stuck on a dead node
    echo "$1" >"$HPC_GUARDS/.signal"
    mv -f "$HPC_GUARDS/.signal" "$HPC_GUARDS/signal"
  elif [[ ${hpc_child:-} ]]; then
    kill -s "$1" "$hpc_child" 2>/dev/null || true
  fi
}

hpc_guards() {  # where the guards of this job's nodes meet: hpctrain_job.guards
  HPC_GUARDS=$HPC_RUN/steps/$HPC_STEP/guards/$HPC_JOB.$HPC_ATTEMPT
  mkdir -p "$HPC_GUARDS"
  hpc_nodes | grep -vxFe "${hpc_unfit//,/$'\n'}" >"$HPC_GUARDS/nodes"
  export HPC_GUARDS
}

hpc_guarded() {  # their starter; what they write counts, for it waits for a dead node long after the end
  local code=0 starter try
  trap '' USR1 TERM
  "$@" &
  starter=$!
  until [[ -e $HPC_GUARDS/over ]] || ! kill -0 "$starter" 2>/dev/null; do sleep 0.5; done
  if [[ ! -e $HPC_GUARDS/over ]]; then # none of them is left
    wait "$starter" || code=$?
    return $((code ? code : 1))
  fi
  # where they hold this node for dead, one of them ends the job
  mkdir "$HPC_GUARDS/closing" 2>/dev/null || sleep 120
  for ((try = 0; try < 20; try++)); do
    kill -0 "$starter" 2>/dev/null || break
    sleep 0.25
  done
  kill -s KILL "$starter" 2>/dev/null || :
  read -r code _ <"$HPC_GUARDS/over"
  return "$code"
}

hpc_close() {  # code, signal: what job.sh does at its end, done by a guard because its node is dead
  # shellcheck disable=SC2034  # hpc_end reads them
  hpc_signal=$2 hpc_chained=yes hpc_log_from=0
  (trap hpc_end EXIT; exit "$1") || :
  hpc_leave
}

hpc_start() {  # the scheduler's starter, again where `hpc_again` says that nothing began
  local code=0
  [[ -z ${hpc_lacks:-} ]] || echo "hpctrain: $hpc_lacks" >&2
  if [[ $hpc_signal ]]; then # nothing runs yet that could hear it
    echo "hpctrain: told to end ($hpc_signal) before the ranks began" >&2
    [[ $hpc_signal == TERM ]] && return 143
    return 75
  fi
  rm -f "steps/$HPC_STEP/began"
  hpc_wait "$@" || code=$?
  while ((code)) && hpc_again "$code" && [[ -z $hpc_signal ]]; do
    code=0
    hpc_wait "$@" || code=$?
  done
  return "$code"
}

type hpc_again >/dev/null 2>&1 || hpc_again() { return 1; }

hpc_vetting() {  # HPC_VETTED: the fit nodes, of which there are HPC_FIT; HPC_UNFIT: the others
  export HPC_UNFIT='' HPC_FIT=$HPC_NODES HPC_VETTED HPC_SUFFIX
  HPC_VETTED=$(hpc_nodes | tr '\n' ' ') || HPC_VETTED=
  HPC_SUFFIX=${HPC_HEAD#"${HPC_VETTED%% *}"} # of names in the fast network
  rm -rf "steps/$HPC_STEP/vet"
  mkdir "steps/$HPC_STEP/vet"
}

hpc_vet() {  # NEEDED STARTER...: each node measures itself
  local needed=$1
  shift
  echo "hpctrain: vetting $HPC_NODES nodes" >&2
  hpc_start timeout --kill-after=5 60 "$@" || echo "hpctrain: vetting did not finish on every node" >&2
  [[ $hpc_signal ]] || hpc_judge_nodes "$needed" --gpus="$HPC_GPUS" # a signal: what starts next ends for it
}

hpc_sweep() {  # NEEDED STARTER...: those that are fit measure collectives in pairs, inside the environment
  local needed=$1
  shift
  [[ $HPC_VETTED && -z $hpc_signal ]] && ((HPC_FIT > 1)) || return 0
  hpc_start timeout --kill-after=5 60 "$@" || echo "hpctrain: collectives did not finish on every node" >&2
  [[ $hpc_signal ]] || hpc_judge_nodes "$needed" --together
}

hpc_judge_nodes() {  # NEEDED WORDS...: who is unfit by what lies there
  local needed=$1 unfit code=0 node fit=
  shift
  unfit=$(PYTHONPATH=$HPC_RUN/code/job.zip "$HPC_PYTHON" -m hpctrain_job.vet.judge --step="steps/$HPC_STEP" \
    --job="$HPC_JOB" --nodes="$HPC_VETTED" --count="$HPC_FIT" --needed="$needed" "$@") || code=$?
  ((code != 80)) || return 80 # hpctrain_job.attempts knows the code
  ((code == 0)) || echo "hpctrain: nobody judged the nodes, exit code $code: all of them train" >&2
  [[ $unfit ]] || return 0
  for node in $HPC_VETTED; do
    if [[ ,$unfit, == *",$node,"* ]]; then ((HPC_FIT -= 1)); else fit+="$node "; fi
  done
  HPC_VETTED=$fit HPC_UNFIT=${HPC_UNFIT:+$HPC_UNFIT,}$unfit
}

hpc_vetted() {  # what starts from here on stays off the unfit ones
  hpc_unfit=$HPC_UNFIT
  [[ $hpc_unfit && -z $hpc_signal ]] || return 0
  # guards are started everywhere, and those of unfit nodes leave at once
  [[ ${hpc_chained:-} && -e steps/$HPC_STEP/guard.sh ]] || hpc_leave_out "$hpc_unfit" "$(hpc_nodes)"
}

hpc_spread() {  # a file to every node's own disk, where the scheduler can (`hpc_broadcast`); else nodes do without
  ((HPC_NODES > 1)) || return 0
  if ! type hpc_broadcast >/dev/null 2>&1 || ! hpc_broadcast "$@"; then
    echo "hpctrain: $1 was not broadcast; each node reads it from the shared disk" >&2
  fi
}

hpc_wait() {
  local code=0
  "$@" &
  hpc_child=$!
  while :; do
    code=0
    wait "$hpc_child" || code=$?
    kill -0 "$hpc_child" 2>/dev/null || break
  done
  # a trapped signal may have hidden the child's own code: bash remembers it
  if ((code > 128)); then
    code=0
    wait "$hpc_child" 2>/dev/null || code=$?
  fi
  return "$code"
}

hpc_fabric() {  # WORDS...: beside the ranks: which network NCCL took on each node; a slow one may end the job
  rm -f "steps/$HPC_STEP"/fabric{,.json}
  PYTHONPATH=$HPC_RUN/code/job.zip "$HPC_PYTHON" -m hpctrain_job.fabric.watch --step="$HPC_STEP" --parent=$$ "$@" \
    </dev/null &
  hpc_tail=$!
}

# hpc_source CODE [own]: the run's own copy of its code: programs write beside it, and the next attempt finds what they
# wrote. The history of your own folder stays there: its .git remembers where it came from, login and all.
hpc_source() {
  local code=$1 fresh=source.$HPC_STEP.$HPC_JOB
  local -a without=()
  [[ ${2:-} != own ]] || without=(--exclude=.git)
  [[ ! -d source ]] || return 0
  [[ -d $code ]] || { echo "hpctrain: $code, the code, is not a folder" >&2 && return 66; }
  rm -rf -- "$fresh"
  mkdir -- "$fresh"
  tar -C "$code" ${without[@]+"${without[@]}"} -c . | tar -C "$fresh" -xp
  chmod -R u+rwX -- "$fresh"
  mv -T -- "$fresh" source
}

hpc_private() {  # variable, folder: one that nobody else can write to, or the run's own in its place
  local name=$1 folder=$2 _hpc_reason=''
  [[ ${!name:-} == "$folder" ]] || return 0  # somebody decided for another
  [[ -d $folder ]] || mkdir -m 700 -- "$folder" 2>/dev/null || :  # above it, others decide who may write
  if [[ -d $folder ]] && _hpc_folder_trusted "$folder" && [[ -O $folder ]]; then
    return
  fi
  if [[ -e $folder || -d ${folder%/*} ]]; then  # where no run brought anything yet, there is nothing to say
    echo "hpctrain: ${_hpc_reason:-$folder is not your folder}; $name is in the run instead" >&2
  fi
  export "$name=$HPC_RUN/cache/$name"
}

hpc_link() {  # a log where people look for it; no reason to end a job
  mkdir -p -- "${2%/*}" && ln -sfn -- "$1" "$2" || echo "hpctrain: no link at $2" >&2
}

hpc_signal=
hpc_unfit=

hpc_begin_job() {
  export HPC_RUN=$PWD HPC_PORT
  HPC_PORT=$(hpc_port)
  mkdir -p logs
  hpc_log_from=$(stat -c %s -- "logs/$HPC_STEP.log" 2>/dev/null) || hpc_log_from=0
  trap hpc_end EXIT
  trap 'hpc_forward USR1' USR1
  trap 'hpc_forward TERM' TERM
  hpc_identify
  rm -rf "steps/$HPC_STEP/exit" "steps/$HPC_STEP"/{hung,nodes,nothing-whole}
  hpc_note began
  # where this attempt begins in logs that all attempts append to: `diagnose` reads no earlier one's failure
  find logs -maxdepth 1 -name "$HPC_STEP.*" -size +0 -printf '%s %f\n' >"steps/$HPC_STEP/log-sizes" || :
}
