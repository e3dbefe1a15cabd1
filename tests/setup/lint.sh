#!/bin/bash
# Every check that reads the code without running it.
set -euo pipefail
cd "$(dirname "$0")/../.."
"$(dirname "$0")/debian.sh" shellcheck 2>/dev/null || true
bin=.venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check -q .
"$bin/mypy" core plugins hpc_* tests bench release
if command -v shellcheck >/dev/null; then
  git ls-files -z '*.sh' ':!tests/golden' .ci/run | xargs -0 shellcheck -x
else
  echo "lint: shellcheck is not installed: scripts were not read" >&2
fi
