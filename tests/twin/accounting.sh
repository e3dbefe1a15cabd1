#!/bin/bash
# Slurm's accounting on the login node: its database, and the site's account, users and QoS, a line of
# /twin/accounting for each; before the controller starts.
set -euo pipefail
export MYSQL_UNIX_PORT=/run/mysqld/mysqld.sock
data=/twin/database
mkdir -p /run/mysqld /var/log/slurm
mariadb-install-db --no-defaults --user=root --datadir="$data" --skip-test-db --innodb-log-file-size=4M \
  --innodb-flush-log-at-trx-commit=0 >/twin/outside/log/database.log 2>&1
mariadbd --no-defaults --user=root --datadir="$data" --socket="$MYSQL_UNIX_PORT" --skip-networking \
  --skip-grant-tables --innodb-log-file-size=4M --innodb-flush-log-at-trx-commit=0 \
  >>/twin/outside/log/database.log 2>&1 &
for ((try = 0; try < 1500; try++)); do
  [[ -S $MYSQL_UNIX_PORT ]] && break
  sleep 0.02
done
chmod 600 /etc/slurm/slurmdbd.conf
# The client library of trixie (11.8.9) refuses every answer that has columns: rootfs.toml has an earlier one.
LD_LIBRARY_PATH=/opt/slurmdbd slurmdbd
for ((try = 0; try < 600; try++)); do # it makes its tables first
  [[ $(sacctmgr -nP show qos format=name 2>/dev/null) == normal ]] && break
  sleep 0.1
done
while read -r -a words; do
  sacctmgr -iQ "${words[@]}" </dev/null >/dev/null || { echo "sacctmgr ${words[*]} failed" >&2; exit 1; }
done </twin/accounting
