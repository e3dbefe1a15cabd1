#!/bin/bash
# Start what stands for the internet on the login node: an authority of our own, known to this twin alone.
# shellcheck disable=SC1091,SC2154  # site.env is written by tree.py
set -euo pipefail
. /twin/site.env
cd /run/twin
mkdir -p tmp
export TMPDIR=/run/twin/tmp # /tmp is the users'
: >hub.script
key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -batch)
openssl req -x509 "${key[@]}" -subj "/CN=twin authority" -addext "keyUsage=critical,keyCertSign" -keyout ca.key -out ca.pem 2>/dev/null
openssl req "${key[@]}" -subj "/CN=twin" -keyout web.key -out web.csr 2>/dev/null
openssl x509 -req -in web.csr -CA ca.pem -CAkey ca.key -days 30 -out web.pem \
  -extfile <(echo "subjectAltName=$outside_names") 2>/dev/null
cp ca.pem /usr/local/share/ca-certificates/twin.crt # as a site's own: in the system's store, in no other
update-ca-certificates >&2
cat >registry.yml <<CONFIG
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: /srv/registry}, delete: {enabled: true}}
http: {addr: "${outside_addresses[1]}:443", tls: {certificate: /run/twin/web.pem, key: /run/twin/web.key}}
CONFIG
docker-registry serve registry.yml >/twin/outside/log/registry.log 2>&1 &
export PYTHONPATH=$checkout
python3 -m tests.twin.services.libraries </twin/libraries
exec python3 -m tests.twin.services.main /run/twin
