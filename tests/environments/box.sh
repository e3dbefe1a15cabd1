#!/bin/bash
# Stand-in for apptainer where its package cannot be had: `exec [OPTIONS] IMAGE COMMAND...` in a mount
# namespace whose root has the system's programs and the folders of --bind= alone. The image is not opened.
set -euo pipefail
[[ ${1:-} == exec ]] || { echo "apptainer (stand-in): only exec" >&2; exit 255; }
shift
binds=()
while [[ ${1:-} == -* ]]; do
  [[ $1 == --bind=* ]] && binds+=("${1#--bind=}")
  shift
done
shift
# shellcheck disable=SC2016  # expanded inside the namespace
exec unshare --map-root-user --mount /bin/bash -c '
  set -euo pipefail
  work=$1 count=$2 root=/mnt
  shift 2
  mount -t tmpfs box "$root"
  for folder in usr etc dev proc; do
    mkdir "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
  done
  for link in bin lib lib64 sbin; do ln -s "usr/$link" "$root/$link"; done
  for ((; count; count--)); do
    IFS=: read -r source target flags <<<"$1"
    target=$root${target:-$source}
    mkdir -p "$target"
    mount --rbind "$source" "$target"
    [[ -z $flags ]] || mount -o "remount,bind,$flags" "$target"
    shift
  done
  # Apptainer goes where it was started, and to the root where that folder is not inside.
  exec /usr/sbin/chroot "$root" /bin/bash -c '\''cd "$0" 2>/dev/null || cd /; exec "$@"'\'' "$work" "$@"
  ' _ "$PWD" "${#binds[@]}" ${binds[@]+"${binds[@]}"} "$@"
