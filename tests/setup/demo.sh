#!/bin/bash
# The product's own demo, from its wheels. Its environment is where the tests find torch.
# usage: demo.sh [--once]   (--once: only when that environment is not there yet)
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ ${1:-} == --once && $(.venv/bin/python tests/setup/torch_python.py) ]]; then exit 0; fi
export OMP_NUM_THREADS=1
exec .venv/bin/hpctrain demo
