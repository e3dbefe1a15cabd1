#!/bin/bash
# First half of a twin's init, on the machine's own file system, in fresh pid, mount, uts and ipc
# namespaces: builds the twin's file system and networks, moves into them, and goes on as site.sh.
# usage: boot.sh FOLDER ROOTFS     (FOLDER/site: what tree.py wrote)
# shellcheck disable=SC1091,SC2154  # site.env is written by tree.py
set -euo pipefail
dir=$1 rootfs=$2
read -r outside _ </proc/self/stat # still the machine's /proc: this is our number outside
mount -t proc proc /proc           # unshare finds namespaces by number, so numbers must be ours
. "$dir/site/twin/site.env"
. "$dir/site/twin/lib.sh"

mkdir -p "$dir/mnt" "$dir/log"
mount -t tmpfs -o mode=755 twin "$dir/mnt"
cd "$dir/mnt"
mkdir upper work root
mount -t overlay -o "lowerdir=$rootfs,upperdir=$PWD/upper,workdir=$PWD/work" twin root
cp -a --no-preserve=ownership "$dir/site/." root/
mkdir -p root/twin/{keep,outside,before,state}
mount --bind "$dir" root/twin/outside
mount -t proc proc root/proc
mount -t tmpfs -o mode=755 run root/run
fresh_dev root/dev

chmod 711 root/root # ordinary users reach what is kept below it
mkdir -p root/opt/twin
place_for() { # place_for PATH PLACE: what PATH can be mounted on
  if [[ -d $1 ]]; then mkdir -p "$2"; else mkdir -p "${2%/*}" && : >>"$2"; fi
}
for i in "${!keep[@]}"; do
  place_for "${keep[i]}" "root/twin/keep/$i"
  if [[ ${opened[i]} ]]; then # what only root may read on the machine is everybody's here
    mount -t overlay -o "ro,lowerdir=${opened[i]}:${keep[i]},metacopy=on" twin "root/twin/keep/$i"
  else
    mount --bind "${keep[i]}" "root/twin/keep/$i"
    mount -o remount,bind,ro "root/twin/keep/$i"
  fi
  [[ ${keep[i]} != /tmp/* ]] || continue # fresh_tmp does these
  place_for "${keep[i]}" "root${keep[i]}"
  mount --bind "root/twin/keep/$i" "root${keep[i]}"
done
if [[ -e /etc/pip.conf ]]; then cp -L /etc/pip.conf root/etc/pip.conf; fi
if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then # services.sh adds the twin's own, and writes the store anew
  cp -L /etc/ssl/certs/ca-certificates.crt root/usr/local/share/ca-certificates/machine.crt
fi

machine=$(readlink /proc/self/ns/net)
mkdir -p root/run/netns
for net in login "${nets[@]}"; do
  : >"root/run/netns/$net"
  unshare --net="root/run/netns/$net" true
done
for net in "${wide[@]}"; do # the way out: user-mode NAT, so nothing changes on the machine
  # shellcheck disable=SC2016
  unshare --mount /bin/bash -c 'mount --bind /etc/resolv.conf root/etc/resolv.conf
    : >"root/run/netns/.$1" # it keeps the view that it has now
    exec chroot root slirp4netns --configure --mtu=1500 --disable-host-loopback \
      --netns-type=path "/run/netns/$1" tap0' _ "$net" >"$dir/log/slirp.$net.log" 2>&1 &
done
for net in "${wide[@]}"; do
  for ((try = 0; try < 500; try++)); do
    [[ -e root/run/netns/.$net ]] && break
    sleep 0.01
  done
done

cd root
pivot_root . twin/before
exec nsenter --net=/run/netns/login chroot . /bin/bash /twin/site.sh "$outside" "$machine"
