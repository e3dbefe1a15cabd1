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
HPCTRAIN_AUTOMODEL_PYTHON=$(tests/setup/torch.sh automodel)
export HPCTRAIN_TORCH_PYTHON HPCTRAIN_DEEPSPEED_PYTHON HPCTRAIN_EARLIER_PYTHON HPCTRAIN_AUTOMODEL_PYTHON
export OMP_NUM_THREADS=1
# uv resolves for other architectures; nothing else of .venv is on the path.
mkdir -p .cache/bin
ln -sfn "$PWD/.venv/bin/uv" .cache/bin/uv
export PATH="$PWD/.cache/bin:$PATH"
if (($#)); then exec .venv/bin/python -m pytest "$@"; fi

# usage: suite NAME [PYTEST ARGUMENTS]
suite() { .venv/bin/python -m pytest -q -o cache_dir=".pytest_cache/$1" "${@:2}"; }

# usage: again NAME CODE   A test that failed beside others is asked once more, alone: a machine that
# two runs share is late at times. What fails alone fails, and so does everything but failed tests.
again() {
  case $2 in
    0) ;;
    1) echo "test.sh: what failed of $1 above, once more and alone:" && suite "$1" --last-failed --last-failed-no-failures none ;;
    *) return "$2" ;;
  esac
}

rm -rf .pytest_cache
# Tests on twins mostly wait for a Slurm, so they run beside the others; what they say comes after.
export HPCTRAIN_PATIENCE=3
log=$(mktemp)
suite twins --durations=10 -m "twin and not budget" >"$log" 2>&1 &
twins=$!
trap 'kill "$twins" 2>/dev/null || :; rm -f "$log"' EXIT
rest=0 there=0
suite rest --durations=10 -m "not budget and not twin" || rest=$?
wait "$twins" || there=$?
cat "$log"
export HPCTRAIN_PATIENCE=1
code=0
again rest "$rest" || code=$?
again twins "$there" || code=$?
((code == 0)) || exit "$code"
suite budgets -m budget
