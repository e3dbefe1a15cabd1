#!/bin/bash
# What a change usually breaks, within three minutes and without root: lint, types of the files that changed, and
# every test that needs nothing special and took less than two seconds when tests/durations.json was written.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/setup/suites.sh
. tests/setup/suites.sh
fresh
export HPCTRAIN_BELOW=2
plain="not (slow or slurm or torch or twin or budget)"
log=$(mktemp)
shared second -m "$plain" >"$log" 2>&1 &
second=$!
trap 'kill "$second" 2>/dev/null || :; rm -f "$log"' EXIT
code=0 second_code=0
shared first -m "$plain" || code=$?
wait "$second" || second_code=$?
cat "$log"

# Since the branch that this one left, or what is not committed yet.
base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base"; git ls-files -o --exclude-standard; } | grep '\.py$' | sort -u)
.venv/bin/ruff check -q .
.venv/bin/ruff format --check -q .
if ((${#changed[@]})); then .venv/bin/mypy "${changed[@]}"; fi
for each in "$code" "$second_code"; do ((each < 2)) || exit "$each"; done
.venv/bin/python tests/setup/closing.py "$reports"
