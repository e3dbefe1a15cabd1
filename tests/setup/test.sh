#!/bin/bash
# Run the tests; what this machine must have (HPCTRAIN_REQUIRE) is not skipped but fails.
# usage: test.sh [PYTEST ARGUMENTS]   (none: everything, what measures time at the end and alone)
set -euo pipefail
cd "$(dirname "$0")/../.."
if ((EUID == 0)) && command -v apt-get >/dev/null; then
  export HPCTRAIN_REQUIRE=${HPCTRAIN_REQUIRE-slurm torch strace twin data}
fi
HPCTRAIN_TORCH_PYTHON=$(tests/setup/torch.sh)
HPCTRAIN_DEEPSPEED_PYTHON=$(tests/setup/torch.sh deepspeed)
HPCTRAIN_EARLIER_PYTHON=$(tests/setup/torch.sh earlier)
export HPCTRAIN_TORCH_PYTHON HPCTRAIN_DEEPSPEED_PYTHON HPCTRAIN_EARLIER_PYTHON OMP_NUM_THREADS=1
if (($#)); then exec .venv/bin/python -m pytest "$@"; fi
# Tests on twins mostly wait for a Slurm, so they run beside the others; what they say comes after.
log=$(mktemp)
.venv/bin/python -m pytest -q --durations=10 -m "twin and not budget" >"$log" 2>&1 &
twins=$!
trap 'kill "$twins" 2>/dev/null || :; rm -f "$log"' EXIT
code=0
.venv/bin/python -m pytest -q -m "not budget and not twin" || code=$?
wait "$twins" || code=$?
cat "$log"
((code == 0)) || exit "$code"
.venv/bin/python -m pytest -q -m budget
