# What test.sh and quick.sh share: the environment of the tests, and runs of pytest that leave a report.
# shellcheck shell=bash
export OMP_NUM_THREADS=1
reports=.cache/reports

fresh() { # no reports, and nobody has taken a test from the queue
  rm -rf .pytest_cache "$reports"
  mkdir -p "$reports/queue"
}

suite() { # suite NAME [PYTEST ARGUMENTS]: leaves the report NAME.json
  HPCTRAIN_REPORT=$reports/$1.json .venv/bin/python -m pytest -q -o cache_dir=".pytest_cache/${1%.again}" "${@:2}"
}

shared() { # shared NAME [PYTEST ARGUMENTS]: of these, the tests that no other run has taken
  local code=0
  HPCTRAIN_QUEUE=$reports/queue suite "$@" || code=$?
  ((code == 5)) || return "$code" # nothing was left for it
}
