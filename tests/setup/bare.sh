#!/bin/bash
# Run a command in a clone of this checkout on a bare Debian: the essential packages, python3, make and
# ca-certificates, a home and a path. Only what is committed is there. Needs root; nothing stays but the
# cached packages, or with --keep the whole machine.
# usage: bare.sh [OPTION...] COMMAND      for example: bare.sh --load "make demo && make test"
#   --release NAME     Debian's release (default: this machine's): bookworm has Python 3.11, trixie 3.13
#   --load             beside it a process for each core that only burns time
#   --certificates     SSL_CERT_FILE is set, as on some machines
#   --limit SECONDS    end it then (default 7200)
#   --keep             leave the folder of the machine, and print where it is
# It uses the network of this machine, whose owner's settings of pip and apt, hosts and authorities are
# copied; folders that these settings name are seen read only.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-trixie}")
load='' keep='' limit=7200 settings=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root)
while (($#)); do
  case $1 in
    --release) release=$2 && shift ;;
    --limit) limit=$2 && shift ;;
    --load) load=yes ;;
    --keep) keep=yes ;;
    --certificates) settings+=(SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt) ;;
    --*) echo "bare.sh: there is no option $1" >&2 && exit 64 ;;
    *) break ;;
  esac
  shift
done
(($# == 1)) || { echo "usage: bare.sh [OPTION...] COMMAND (one word: quote it)" >&2; exit 64; }
((EUID == 0)) || { echo "bare.sh: making a machine needs root" >&2; exit 77; }
tests/setup/debian.sh mmdebstrap git >/dev/null
[[ -z $(git status --porcelain) ]] || echo "bare.sh: what is not committed is not in the clone" >&2

# The packages, once for each release.
base=$PWD/.cache/bare/$release
mkdir -p .cache/bare
if [[ ! -d $base ]]; then
  exec 9>.cache/bare/lock
  flock 9
  if [[ ! -d $base ]]; then
    rm -rf --one-file-system "$base.new"
    mirror=$(.venv/bin/python -c 'from tests.twin.rootfs import mirror; print(mirror())') || exit 1 # make setup first
    mmdebstrap --quiet --mode=root --variant=apt --include=python3,make,ca-certificates \
      --dpkgopt=force-unsafe-io "$release" "$base.new" "$mirror"
    mv "$base.new" "$base"
  fi
  exec 9>&-
fi

machine=$(mktemp -d "$PWD/.cache/bare/run-XXXXXX")
chmod 755 "$machine"
burners=()
end() { # the machine's own processes died with its namespace
  ((${#burners[@]} == 0)) || kill "${burners[@]}" 2>/dev/null || :
  if [[ $keep ]]; then echo "bare.sh: left in $machine" >&2; else rm -rf --one-file-system "$machine"; fi
}
trap end EXIT
cp -a "$base/." "$machine"
git clone -q --no-hardlinks . "$machine/root/checkout"

# What the owner of this machine has configured, and the folders that it names.
owner() { # owner FILE: at the same place
  mkdir -p "$machine${1%/*}" && cp -L "$1" "$machine$1"
}
for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf; do
  if [[ -e $file ]]; then owner "$file"; fi
done
apt-config dump | grep -E '^Acquire::(https?|ftp|Retries)\b.*"..*"' >"$machine/etc/apt/apt.conf.d/90owner" || :
folders=()
while read -r file; do
  owner "$file"
  while read -r path; do # an index's pages lead to files beside it
    if [[ -f $path && ! -e $machine$path ]]; then owner "$path"; fi
    if [[ -d ${path%/simple} ]]; then folders+=("${path%/simple}"); fi
  done < <(grep -oE '(file://)?/[^ ,]+' "$file" | sed 's#^file://##' | sort -u)
done < <(env -i PATH="$PATH" HOME="$HOME" python3 -m pip config debug | sed -nE 's/^ +(.*), exists: True$/\1/p')
awk -v folder="$machine/usr/local/share/ca-certificates" \
  '/BEGIN CERT/ {n++; file = sprintf("%s/owner-%03d.crt", folder, n)} n {print > file}' \
  /etc/ssl/certs/ca-certificates.crt
chroot "$machine" update-ca-certificates >/dev/null 2>&1

if [[ $load ]]; then
  for ((core = 0; core < $(nproc); core++)); do
    timeout "$limit" bash -c 'while :; do :; done' &
    burners+=($!)
  done
fi
# A root of its own, not a chroot, in which no user namespace could be made.
# shellcheck disable=SC2016
inside='
set -euo pipefail
machine=$1 folders=$2
shift 2
mount --bind "$machine" "$machine"
cd "$machine"
. "$OLDPWD/tests/twin/lib.sh"
fresh_dev dev
mount -t proc proc proc
mount --rbind /sys sys # with the control groups, which Slurm asks for
for path in $folders; do
  mkdir -p ".$path"
  mount --bind "$path" ".$path"
  mount -o remount,bind,ro ".$path"
done
mkdir -p .before
pivot_root . .before
cd /root/checkout
chroot /.before umount -l / # the machine itself may lack umount
hostname bare
code=0
"$@" || code=$? # not by exec: a machine needs a first process that collects what others leave
exit "$code"
'
timeout --kill-after=10 "$limit" unshare --pid --mount --ipc --uts --fork --kill-child --propagation private \
  bash -c "$inside" _ "$machine" "${folders[*]}" env -i "${settings[@]}" bash -euc "$1" </dev/null
