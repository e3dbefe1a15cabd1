#!/bin/bash
# The Leonardo document (Automodel and Nemotron), step by step, on a login node of Leonardo.
# usage: leonardo.sh     in a folder with nemotron-lora.toml, nemotron-1gpu.toml, nemotron.yaml, chats.jsonl, Automodel/
set -euo pipefail
run=nemotron-lora.toml
step() { printf '\n== %s\n' "$*"; }

step '0 uv, which resolves packages for a machine that is not this one'
module load python/3.11.7
python3 -m venv ~/tools
~/tools/bin/pip install --quiet uv
PATH=~/tools/bin:$PATH

step '1 Set up: what needs the network on the serial nodes, what compiles on a Booster node without any'
hpctrain check $run
hpctrain lock $run
hpctrain plan $run
hpctrain build $run --wait

step '2 Verify the installation, by the document'"'"'s own words'
hpctrain exec $run -- python -c "
import torch, mamba_ssm, causal_conv1d, nemo_automodel
print(f'PyTorch: {torch.__version__}, CUDA: {torch.cuda.is_available()}, mamba_ssm: OK, nemo_automodel: OK')
"

step '3 Data: chats in the format of OpenAI, looked at line by line'
hpctrain data check chats.jsonl

step '4 The single-GPU test, without torchrun, in the debug queue'
hpctrain lock nemotron-1gpu.toml
hpctrain submit nemotron-1gpu.toml --locked --wait --set 'resources.queue="dbg"'
hpctrain logs nemotron-1gpu

step '5 Multi-GPU training, by torchrun'
hpctrain submit $run --locked --wait
hpctrain status nemotron-lora
hpctrain logs nemotron-lora
runs=/leonardo_work/$SLURM_ACCOUNT/$USER/hpctrain/runs
here=$(find "$runs"/nemotron-lora -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort -V | tail -n 1)
tail -n 3 "$here"/logs/slurm/nemotron-lora_[0-9]*.out

step '6 Again: nothing is built a second time'
hpctrain build $run --wait

step 'What is there now'
find "/leonardo_work/$SLURM_ACCOUNT/$USER/hpctrain/checkpoints" -name losses.json
sha256sum "$FAST"/hpctrain/env/wheel-*/*.whl
