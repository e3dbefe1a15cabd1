#!/bin/bash
# Print an interpreter of the torch tests; nothing where the demo has built no environment.
# usage: torch.sh            the demo's own environment
#        torch.sh deepspeed  over it DeepSpeed; nothing without the compiler that it needs when it starts
#        torch.sh earlier    over it the generation before: transformers 4 with TRL 0.23, and sacrebleu
#        torch.sh automodel  over it NeMo Automodel, as far as its own validator needs it
#        torch.sh megatron   over it megatron-core, the last for Python 3.11
# What lies over it is built once, below .cache, and holds only what differs.
set -euo pipefail
cd "$(dirname "$0")/../.."
demo=$(.venv/bin/python tests/setup/torch_python.py)
[[ $demo ]] || exit 0
export DS_BUILD_OPS=0
case ${1:-} in
  "") echo "$demo"; exit 0 ;;
  deepspeed)
    command -v c++ >/dev/null || exit 0
    first=(setuptools wheel) then=(--no-build-isolation deepspeed==0.19.8) ;;
  earlier)
    first=(transformers==4.57.1 trl==0.23.1 peft==0.17.1 accelerate==1.10.1 datasets==3.6.0)
    then=(sacrebleu==2.6.0) ;;
  automodel)  # what else it asks for are 2.6 GB of kernels for GPUs
    first=(attrs)
    then=(--no-deps nemo-automodel==0.7.0 torchao==0.18.0 torchdata==0.11.0 megatron-fsdp==0.5.0) ;;
  megatron)
    first=(packaging) then=(--no-deps megatron-core==0.16.1) ;;
  *) echo "torch.sh: there is no $1" >&2; exit 64 ;;
esac
over=.cache/torch-$1
asked="$demo ${first[*]} ${then[*]}"
if [[ ! -e $over/.made || $(<"$over/.made") != "$asked" ]]; then
  site='import sysconfig; print(sysconfig.get_path("purelib"))'
  "$demo" -m venv --clear "$over" >&2
  "$demo" -c "$site" >"$("$over/bin/python" -c "$site")/demo.pth"
  "$over/bin/python" -m pip install -q "${first[@]}" >&2
  "$over/bin/python" -m pip install -q "${then[@]}" >&2
  printf '%s' "$asked" >"$over/.made"
fi
echo "$PWD/$over/bin/python"
