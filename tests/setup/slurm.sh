#!/bin/bash
# Install what the Slurm rig needs on Debian or Ubuntu; nothing is started.
set -euo pipefail
packages=(slurmctld slurmd slurmdbd slurm-client mariadb-server munge iproute2 util-linux mount shellcheck)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -Wf '${Status}' "$package" 2>/dev/null) == *" installed" ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0
export DEBIAN_FRONTEND=noninteractive
# a package must not start its daemons: the rig starts its own
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
