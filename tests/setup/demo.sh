#!/bin/bash
# The product's own demo, from its wheels. Its environment is where the tests find torch.
# usage: demo.sh [VENV]   (the environment with the wheels; default: .venv)
#        demo.sh --once   (only when the demo's environment is not there yet)
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.venv
case ${1:-} in
  --once) if [[ $(.venv/bin/python tests/setup/torch_python.py) ]]; then exit 0; fi ;;
  ?*) venv=$1 ;;
esac
export OMP_NUM_THREADS=1
exec "$venv/bin/hpctrain" demo
