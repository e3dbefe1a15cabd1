#!/bin/bash
# Stand-in for Sarus Suite's `sarusctl`: pull, migrate and images. The store is a folder of SquashFS images where
# CSCS's page has it, each named by its reference; nothing else of Parallax is here.
set -euo pipefail
fail() {
  echo "Error: $1" >&2
  exit 1
}
store=/capstor/scratch/cscs/$USER/.parallax_imagestore
case ${1:-} in
  pull | migrate)
    [[ $# == 2 ]] || fail "usage: sarusctl $1 IMAGE"
    if [[ $1 == pull ]]; then podman pull -q "$2" >/dev/null || fail "cannot pull $2"; fi
    podman image exists "$2" || fail "no image $2 in Podman's store"
    mkdir -p "$store"
    rm -f "$store/${2//\//+}.sqsh"
    enroot import -x mount -o "$store/${2//\//+}.sqsh" "podman://$2" >/dev/null
    echo "Migrating $2 with Parallax..."
    ;;
  images)
    echo "REPOSITORY TAG IMAGE ID CREATED SIZE R/O"
    for file in "$store"/*.sqsh; do
      [[ -e $file ]] || continue
      name=$(basename "$file" .sqsh)
      name=${name//+/\/}
      printf '%s  %s  917b79865e78  3 months ago  6.11 kB  true\n' "${name%:*}" "${name##*:}"
    done
    ;;
  *) fail "this stand-in knows pull, migrate and images" ;;
esac
