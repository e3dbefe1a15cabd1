#!/bin/bash
# Run the tests; what this machine must have (HPCTRAIN_REQUIRE) is not skipped but fails.
# usage: test.sh [PYTEST ARGUMENTS]   (none: everything, what measures time at the end and alone)
set -euo pipefail
cd "$(dirname "$0")/../.."
if ((EUID == 0)) && command -v apt-get >/dev/null; then
  export HPCTRAIN_REQUIRE=${HPCTRAIN_REQUIRE-slurm torch strace twin data root browser}
fi
HPCTRAIN_TORCH_PYTHON=$(tests/setup/torch.sh)
HPCTRAIN_DEEPSPEED_PYTHON=$(tests/setup/torch.sh deepspeed)
HPCTRAIN_EARLIER_PYTHON=$(tests/setup/torch.sh earlier)
HPCTRAIN_AUTOMODEL_PYTHON=$(tests/setup/torch.sh automodel)
HPCTRAIN_MEGATRON_PYTHON=$(tests/setup/torch.sh megatron)
export HPCTRAIN_TORCH_PYTHON HPCTRAIN_DEEPSPEED_PYTHON HPCTRAIN_EARLIER_PYTHON HPCTRAIN_AUTOMODEL_PYTHON
export HPCTRAIN_MEGATRON_PYTHON
# shellcheck source=tests/setup/suites.sh
. tests/setup/suites.sh
if (($#)); then exec .venv/bin/python -m pytest "$@"; fi

# again NAME CODE   A test that failed beside others is run once more, alone: a machine that two runs share is
# late at times. closing.py names what passed then, and more than two of these are a failure.
again() {
  case $2 in
    0) ;;
    1) echo "test.sh: what failed of $1 above, once more and alone:"
       suite "$1.again" --last-failed --last-failed-no-failures none || (($? == 1)) ;;
    *) return "$2" ;;
  esac
}

fresh
# Tests on twins mostly wait for a Slurm, so they run beside the others; when they are through, that run takes
# of the others what is left. Two runs must not both have a Slurm of the rig's. Their log comes after.
export HPCTRAIN_PATIENCE=3
log=$(mktemp)
shared twins --durations=10 -m "not budget and not slurm" >"$log" 2>&1 &
twins=$!
trap 'kill "$twins" 2>/dev/null || :; rm -f "$log"' EXIT
rest_code=0 twins_code=0
shared rest --durations=10 -m "not budget and not twin" || rest_code=$?
wait "$twins" || twins_code=$?
cat "$log"
export HPCTRAIN_PATIENCE=1
again rest "$rest_code"
again twins "$twins_code"
budgets_code=0
suite budgets -m budget || budgets_code=$?
((budgets_code < 2)) || exit "$budgets_code"
.venv/bin/python tests/setup/closing.py "$reports"
