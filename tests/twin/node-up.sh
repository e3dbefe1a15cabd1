#!/bin/bash
# Switch a compute node on; from the login node. Its init's number (here) is in /run/twin/NAME.
# usage: node-up.sh NAME
# shellcheck disable=SC1091,SC2154  # site.env is written by tree.py
set -euo pipefail
name=$1
. /twin/site.env
read -r _ number gpus reach < <(grep "^$name " /twin/nodes)
ip link del "to${number##*.}" 2>/dev/null || : # it was on before
ip link add "to${number##*.}" type veth peer name "$interface" netns "$name"
ip link set "to${number##*.}" master fabric up
nsenter --net="/run/netns/$name" \
  unshare --pid --mount --uts --ipc --fork --kill-child --propagation private \
  /bin/bash /twin/node.sh "$name" "$number" "$gpus" "$reach" \
  </dev/null >"/twin/outside/log/$name.log" 2>&1 &
echo $! >"/run/twin/$name"
