#!/bin/bash
# The init of a rig: runs in fresh pid, mount, net, uts and ipc namespaces and takes all with it.
# usage: boot.sh FOLDER NODES GPUS KEEP...   (KEEP: paths below /tmp or /root that stay visible)
set -euo pipefail
dir=$1 nodes=$2 gpus=$3
shift 3
read -r pid _ </proc/self/stat # still the host's /proc: this is our number outside
cd "$dir"

for top in tmp root; do # our own, in which ordinary users may reach what is kept
  mkdir -p "own/$top"
  mount -t tmpfs -o mode=1777 tmpfs "own/$top"
  for path in "$dir" "$@"; do
    [[ $path == /$top/* ]] || continue
    mkdir -p "own$path"
    mount --rbind "$path" "own$path"
  done
done
mount --rbind own/root /root
mount --rbind own/tmp /tmp
cd "$dir"
mount -t proc proc /proc
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
for file in hosts passwd group; do mount --bind "etc/$file" "/etc/$file"; done
mount --bind etc/slurm /etc/slurm
hostname login
ip link set lo up
ip addr add 10.77.0.1/32 dev lo # glibc resolves nothing on a machine that has only 127.0.0.1

for ((i = 0; i < gpus; i++)); do # Slurm takes only devices for GPUs
  : >"gpu$i"
  mount --bind /dev/null "gpu$i"
done
mkdir -p state log munge /run/munge
dd if=/dev/urandom of=munge/key bs=128 count=1 status=none
chmod 400 munge/key
munged --force --num-threads=2 --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" \
  --seed-file="$dir/munge/seed" --log-file="$dir/log/munged.log"
if [[ -e etc/slurm/slurmdbd.conf ]]; then
  chmod 600 etc/slurm/slurmdbd.conf
  export MYSQL_UNIX_PORT=/run/database.sock
  mariadb-install-db --no-defaults --user=root --datadir="$dir/db" --skip-test-db >log/install-db.log
  mariadbd --no-defaults --user=root --datadir="$dir/db" --socket="$MYSQL_UNIX_PORT" --skip-networking \
    --skip-grant-tables --innodb-flush-log-at-trx-commit=0 >log/mariadbd.log 2>&1 &
  for ((try = 0; try < 1500; try++)); do [[ -S $MYSQL_UNIX_PORT ]] && break; sleep 0.02; done
  slurmdbd
  for ((try = 0; try < 300; try++)); do sacctmgr -iQ add cluster rig 2>/dev/null && break; sleep 0.1; done
  sacctmgr -iQ add account project
  sacctmgr -iQ add user root,alice,bob account=project # without one sacct finds jobs only by their ids
fi
slurmctld
for ((i = 1; i <= nodes; i++)); do
  mkdir -p "spool.n$i"
  slurmd -N "n$i"
done
for ((try = 0; try < 500; try++)); do
  idle=$(sinfo -h -t idle -o %D -p batch 2>/dev/null || :)
  [[ ${idle:-0} == "$nodes" ]] && break
  sleep 0.02
done
[[ ${idle:-0} == "$nodes" ]] || { echo "only ${idle:-0} of $nodes nodes came up" >&2; exit 1; }
echo "$pid" >ready.new
mv ready.new ready
while :; do # stay, and collect the children that nobody else does
  sleep 3600 &
  wait $! || :
done
