#!/bin/bash
# Install the Debian packages that tests need and that are missing; without root say what will be skipped.
# usage: debian.sh [PACKAGE...]   (default: what all tests need)
set -euo pipefail
cd "$(dirname "$0")"
if (($# == 0)); then
  set -- git strace fish zsh tmux ccache g++ fonts-dejavu-core
  [[ -e $(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h ]] || set -- "$@" python3-dev
  # Ubuntu has no such package, but may have a browser
  [[ $(type -P chromium chromium-browser google-chrome) ]] || set -- "$@" chromium
  all=true
fi
missing=()
for package in "$@"; do
  [[ $(dpkg-query -Wf '${Status}' "$package" 2>/dev/null) == *" installed" ]] || missing+=("$package")
done
if ((EUID)) || ! command -v apt-get >/dev/null; then
  echo "setup: not root on Debian; tests skip what they lack: slurm ${missing[*]}" >&2
  exit 0
fi
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
if [[ ${all:-} ]]; then ./slurm.sh; fi
