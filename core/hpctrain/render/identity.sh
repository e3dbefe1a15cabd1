# What this run's own folders (checkpoints, tokens) and its stop file are called, wherever its scripts lie: a name made
# once and kept in the file `id`, with the folder that it was made in. Sourced in the run's folder, by run.sh and by
# steps/*/job.sh; hpctrain.run.disk.directory does the same in Python.
# shellcheck shell=bash

hpc_identify() {  # exports HPC_OWN
  local place other=''
  HPC_OWN=
  if [[ -e id ]]; then
    { IFS= read -r HPC_OWN && IFS= read -r place; } <id || :
    if [[ ! $HPC_OWN =~ ^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$ || ${place:-} != /* ]]; then
      echo "hpctrain: $PWD/id is damaged: it names the folder of the run's checkpoints, then this one" >&2
      return 78
    fi
    [[ $place != "$PWD" ]] || return 0
    if [[ -e $place/id && $place/id -ef id ]]; then return 0; fi # the same folder by another path
    [[ ! -e $place/id ]] || IFS= read -r other <"$place/id" || :
    if [[ $other == "$HPC_OWN" ]]; then
      echo "hpctrain: a copy of $place: a run of its own, which has no checkpoints yet" >&2
      rm -f id
      HPC_OWN=
    fi
  fi
  hpc_identified "$HPC_OWN"
  IFS= read -r HPC_OWN <id
}

hpc_identified() {  # NAME: it was moved here; empty: it has none
  local name=$1 fresh=id.$HOSTNAME.$$
  if [[ $name ]]; then
    printf '%s\n%s\n' "$name" "$PWD" >"$fresh"
    mv -f "$fresh" id
    return
  fi
  name=${PWD##*/}
  name=${name//[^A-Za-z0-9._-]/_}
  name=${name/#[.-]/_}
  printf '%s-%s\n%s\n' "${name:0:60}" "$(od -An -N3 -tx1 /dev/urandom | tr -d ' \n')" "$PWD" >"$fresh"
  ln "$fresh" id 2>/dev/null || : # another job of the run was faster
  rm -f "$fresh"
}
export HPC_OWN
