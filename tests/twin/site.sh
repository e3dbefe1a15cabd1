#!/bin/bash
# Second half of a twin's init, on its own file system: the login node, with Slurm's controller.
# usage: site.sh NUMBER NETWORK      (our process number outside; the machine's own network)
# shellcheck disable=SC1091,SC2154  # site.env is written by tree.py
set -euo pipefail
outside=$1
[[ $(readlink /proc/self/ns/net) != "$2" ]] || { echo "still in the machine's network" >&2; exit 1; }
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
. /twin/site.env
. /twin/lib.sh
umount -l /twin/before
mount -t sysfs -o ro sysfs /sys
for i in "${!keep[@]}"; do # or alice's, where its modes could not be changed
  [[ ${private[i]} ]] || continue
  mount --bind -o ro,X-mount.idmap=b:0:61001:1 "/twin/keep/$i" "/twin/keep/$i"
  [[ ${keep[i]} == /tmp/* ]] || mount --bind "/twin/keep/$i" "${keep[i]}"
done
fresh_tmp
hostname "$login"

ip link set lo up
ip link add fabric type bridge
ip addr add "$address/16" dev fabric
for number in "${proxy_addresses[@]}"; do ip addr add "$number/32" dev fabric; done
for number in "${outside_addresses[@]}"; do ip addr add "$number/32" dev lo; done
ip link set fabric up
[[ -z $proxy ]] || tinyproxy -c /etc/tinyproxy.conf

lay_out /twin/storage
lay_out /twin/login-storage
mkdir -p /run/munge /run/twin /var/log/munge
dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 status=none
chown -R root: /etc/munge /run/munge /var/lib/munge /var/log/munge
chmod 400 /etc/munge/munge.key
chmod 755 /run/munge
munged --force --num-threads=2
/bin/bash /twin/services.sh >/twin/outside/log/services.log 2>&1 &
if [[ -e /twin/accounting ]]; then /bin/bash /twin/accounting.sh; fi
if [[ -e /twin/edf.c ]]; then # a plugin of the site's, built against its own Slurm
  mkdir -p /run/edf
  gcc -shared -fPIC -O1 -Wall -Werror -o /usr/local/lib/twin-edf.so /twin/edf.c
fi
slurmctld
count=0
while read -r name _; do
  count=$((count + 1))
  /bin/bash /twin/node-up.sh "$name"
done </twin/nodes

for ((try = 0; try < 500; try++)); do
  idle=$(sinfo -h -t idle -N -o %N 2>/dev/null | sort -u | grep -vc '^cloud' || :)
  [[ ${idle:-0} == "$count" ]] && break
  sleep 0.02
done
[[ ${idle:-0} == "$count" ]] || { echo "only ${idle:-0} of $count nodes came up" >&2; exit 1; }
for ((try = 0; try < 250; try++)); do # the way out was started long before
  [[ $(ip route show default) ]] && break
  sleep 0.02
done
[[ $(ip route show default) ]] || { echo "no way out: see log/slirp.login.log" >&2; exit 1; }
echo "$outside" >/twin/outside/ready.new
mv /twin/outside/ready.new /twin/outside/ready
stay
