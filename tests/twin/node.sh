#!/bin/bash
# The init of one compute node.
# usage: node.sh NAME ADDRESS GPUS wide|closed
# shellcheck disable=SC1091,SC2154  # site.env is written by tree.py
set -euo pipefail
name=$1 number=$2 gpus=$3 reach=$4
. /twin/site.env
. /twin/lib.sh
mount -t proc proc /proc
mount -t sysfs -o ro sysfs /sys
hostname "$name"
ip link set lo up
ip addr add "$number/16" dev "$interface"
ip link set "$interface" up
for proxy_number in "${proxy_addresses[@]}"; do ip route add "$proxy_number/32" dev "$interface"; done
fresh_dev /dev
fresh_tmp
if [[ $reach == wide ]]; then
  ip route add "$outside_net" via "$address" dev "$interface"
else
  mount --bind /dev/null /etc/resolv.conf
fi
for ((i = 0; i < gpus; i++)); do mknod -m 666 "/dev/nvidia$i" c 1 3; done # Slurm takes only devices
lay_out /twin/node-storage
while read -r -a line; do mount -t tmpfs -o mode=1777 missing "${line[5]%/*}"; done </twin/login-storage
mkdir -p "/var/spool/slurmd.$name" /var/spool/slurmd
mount --bind "/var/spool/slurmd.$name" /var/spool/slurmd
slurmd -N "$name"
stay
