#!/bin/bash
# Stand-in for NERSC's podman-hpc over the real podman: `pull` fetches with podman and packs the image for compute
# nodes as podman-hpc does, `run` unpacks it into the node's memory and enters it in namespaces of its own, with a
# clean environment. The isolation is real: what no --volume brings is not there, nor a variable that no --env names.
set -euo pipefail
store=$PSCRATCH/storage
export XDG_RUNTIME_DIR=/dev/shm/$USER/run BUILDAH_ISOLATION=chroot
umask 077
mkdir -p "$store" "$XDG_RUNTIME_DIR"
fail() {
  echo "Error: $1" >&2
  exit 125
}
podman() { command podman --root "/dev/shm/$USER/root" --storage-driver=vfs "$@"; }
packed() { local name=${1//\//+}; echo "$store/${name/:/+}"; }

pull() {
  podman pull -q "$1" >/dev/null
  podman image inspect --format '{{.Digest}}' "$1" >"$(packed "$1").digest"
  podman image inspect --format '{{range .Config.Env}}{{println .}}{{end}}' "$1" >"$(packed "$1").env"
  # shellcheck disable=SC2016
  command podman --root "/dev/shm/$USER/root" --storage-driver=vfs unshare bash -euo pipefail -c '
    root=$(podman --root "/dev/shm/$USER/root" --storage-driver=vfs image mount "$1")
    mksquashfs "$root" "$2" -quiet -no-progress -noappend -comp lz4 -all-root >/dev/null' _ "$1" "$(packed "$1").new"
  mv -f "$(packed "$1").new" "$(packed "$1").sqsh"
}

run() {
  local word variable workdir='' root
  local -a volumes=() variables=("HOME=/root" "TERM=xterm")
  while [[ ${1:-} == -* ]]; do
    word=$1
    shift
    case $word in
      --rm | --entrypoint= | --network=host | --ipc=host | --gpu | --nccl-plugin | --mpi | --cuda-mpi) ;;
      --workdir=*) workdir=${word#*=} ;;
      --volume=*) volumes+=("${word#*=}") ;;
      --env=*=*) variables+=("${word#*=}") ;;
      --env=*)
        while IFS= read -r -d '' variable; do
          # shellcheck disable=SC2053  # a pattern
          [[ ${variable%%=*} != ${word#*=} ]] || variables+=("$variable")
        done < <(env -0)
        ;;
      *) fail "unknown flag: $word" ;;
    esac
  done
  local image=$1
  shift
  [[ -e $(packed "$image").sqsh ]] || fail "$image: image not known"
  while IFS= read -r word; do [[ ! $word ]] || variables=("$word" "${variables[@]}"); done <"$(packed "$image").env"
  root=/dev/shm/$USER/images/$(basename "$(packed "$image")")
  mkdir -p "${root%/*}"
  (
    flock 9
    [[ -e $root.whole ]] || { unsquashfs -q -n -f -d "$root" "$(packed "$image").sqsh" >/dev/null && touch "$root.whole"; }
  ) 9>"$root.lock"
  # shellcheck disable=SC2016
  exec unshare --user --map-root-user --mount bash -euo pipefail -c '
    root=$1 workdir=$2 volumes=$3
    shift 3
    for place in proc sys dev; do mkdir -p "$root/$place" && mount --rbind "/$place" "$root/$place"; done
    for file in etc/hosts etc/resolv.conf; do mount --bind "/$file" "$root/$file" 2>/dev/null || :; done
    for ((; volumes > 0; volumes--)); do
      IFS=: read -r source target mode <<<"$1"
      shift
      [[ -e $source ]] || { echo "Error: statfs $source: no such file or directory" >&2 && exit 125; }
      [[ -e $root$target ]] || mkdir -p "$root$target"
      mount --rbind "$source" "$root$target"
      [[ $mode != ro ]] || mount -o remount,bind,ro "$root$target" || :
    done
    exec chroot "$root" /usr/bin/env -i "${@:2:$1}" /bin/bash -c '\''cd -- "$1" && shift && exec "$@"'\'' _ "${workdir:-/}" "${@:$1 + 2}"
  ' _ "$root" "$workdir" "${#volumes[@]}" ${volumes[@]+"${volumes[@]}"} "${#variables[@]}" "${variables[@]}" "$@"
}

case ${1:-} in
  pull) pull "$2" ;;
  image) [[ $2 == inspect ]] && cat "$(packed "${*: -1}").digest" ;;
  run) shift && run "$@" ;;
  *) fail "unrecognized command podman-hpc ${1:-}" ;;
esac
