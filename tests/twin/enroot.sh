#!/bin/bash
# Stand-in for enroot's `import`: a SquashFS image from podman's store (podman://NAME) or from a registry
# (docker://[REGISTRY#]NAME). The image is real, with its environment in /etc/environment; nothing else of
# enroot is here. -x is the site's own flag for how podman's image is read; both ways give the same.
set -euo pipefail
fail() {
  echo "[ERROR] $1" >&2
  exit 1
}
[[ ${1:-} == import ]] || { echo "enroot (stand-in): only import" >&2; exit 2; }
shift
output='' arch=()
while getopts :a:o:x: flag; do
  case $flag in
    a) arch=(--arch "$OPTARG") ;;
    o) output=$OPTARG ;;
    x) [[ $OPTARG == mount ]] || fail "Invalid argument: -x $OPTARG" ;;
    *) fail "Unknown option: -$OPTARG" ;;
  esac
done
shift $((OPTIND - 1))
[[ $# == 1 ]] || fail "usage: enroot import [-x mount] [-a ARCH] [-o FILE] URI"
case $1 in
  podman://?*) name=${1#podman://} ;;
  docker://?*)
    name=${1#docker://}
    name=${name/\#//}
    podman pull -q "${arch[@]}" "$name" >/dev/null || fail "Could not fetch $name"
    ;;
  *) fail "Invalid argument: $1" ;;
esac
default=${name//\//+}
output=${output:-${default/:/+}.sqsh}
[[ ! -e $output ]] || fail "File already exists: $output"
podman image exists "$name" || fail "No such image: $name"
[[ -d $(dirname "$output") ]] || fail "No such file or directory: $output"
# shellcheck disable=SC2016
podman unshare bash -euo pipefail -c '
  root=$(podman image mount "$1")
  environment=$(mktemp)
  trap '\''rm -f "$environment"; podman image unmount "$1" >/dev/null'\'' EXIT
  podman image inspect -f "{{range .Config.Env}}{{println .}}{{end}}" "$1" | sed "/^$/d" >"$environment"
  pseudo=(-p "/etc/environment f 644 0 0 cat $environment")
  [[ ! -e $root/etc/environment ]] || pseudo=()
  [[ -d $root/etc ]] || pseudo=(-p "/etc d 755 0 0" "${pseudo[@]}")
  mksquashfs "$root" "$2" -quiet -no-progress -noappend -comp lz4 -all-root "${pseudo[@]}" >/dev/null' \
  _ "$name" "$output" || { rm -f "$output"; fail "Could not create $output"; }
echo "[INFO] Created squashfs filesystem $output"
