#!/bin/bash
# Install what building and starting twins needs on Debian, and build their root file system.
# Where that cannot be done the tests on twins are skipped, or fail where HPCTRAIN_REQUIRE has twin.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ((EUID)) || ! command -v apt-get >/dev/null; then exit 0; fi # debian.sh has said so
tests/setup/debian.sh mmdebstrap iproute2 util-linux mount
HPCTRAIN_TORCH_PYTHON=$(tests/setup/torch.sh)
export HPCTRAIN_TORCH_PYTHON
tests/twin/twin root || echo "setup: no twins here" >&2
