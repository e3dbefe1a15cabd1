#!/bin/bash
# Stand-in for apptainer where its package cannot be had: `exec [OPTIONS] IMAGE.sqsh COMMAND...` unpacks
# a SquashFS image and changes root into it in a user namespace; nothing else is done.
set -euo pipefail
[[ ${1:-} == exec ]] || { echo "apptainer (stand-in): only exec" >&2; exit 255; }
shift
binds=()
while [[ ${1:-} == -* ]]; do
  [[ $1 == --bind=* ]] && binds+=("${1#--bind=}")
  shift
done
image=$1
shift
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
unsquashfs -q -n -d "$work/root" "$image" >/dev/null
# shellcheck disable=SC2016
unshare --map-root-user --mount /bin/bash -c '
  root=$1 count=$2
  shift 2
  mount --rbind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  for ((; count; count--)); do
    IFS=: read -r source target options <<<"$1"
    target=${target:-$source}
    mkdir -p "$root/$target"
    mount --rbind "$source" "$root/$target"
    if [[ $options == ro ]]; then mount -o remount,bind,ro "$root/$target"; fi
    shift
  done
  exec chroot "$root" "$@"' _ "$work/root" "${#binds[@]}" "${binds[@]}" "$@"
