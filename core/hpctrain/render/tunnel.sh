#!/bin/bash
# An editor's tunnel into this job: its command line from a checked archive, its words in a private file.
# What it keeps (a token, a server) lies on this node and goes with the job.
# usage: tunnel.sh ARCHIVE NAME FOLDER   (in the run directory)
set -euo pipefail
umask 077
archive=$1 name=$2 folder=$3 said=$PWD/steps/$HPC_STEP/said
work=$(mktemp -d "${TMPDIR:-/tmp}/hpc-tunnel.XXXXXX")
child=
# shellcheck disable=SC2317  # a trap calls it
leave() {
  [[ -z $child ]] || kill "$child" 2>/dev/null || :
  rm -rf -- "$work"
}
trap leave EXIT
trap 'exit 143' TERM
tar -xzf "$archive" -C "$work"
[[ -x $work/code ]] || { echo "the archive holds no program called code" >&2; exit 2; }
: >"$said"
cd -- "$folder"
export VSCODE_CLI_DATA_DIR=$work/data VSCODE_CLI_USE_FILE_KEYRING=1  # its token in there, in no keyring
"$work/code" tunnel --accept-server-license-terms --name "$name" \
  </dev/null >>"$said" 2>&1 &
child=$!
code=0
wait "$child" || code=$?
exit "$code"
