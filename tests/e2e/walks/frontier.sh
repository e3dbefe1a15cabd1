#!/bin/bash
# The Frontier document (LoRA of Llama 3 with DeepSpeed), step by step, on a login node of Frontier.
# usage: frontier.sh     in a folder with tutorial.toml; the account in your settings
set -euo pipefail
run=tutorial.toml
name=finetune_llama3_ds
step() { printf '\n== %s\n' "$*"; }

step '0 uv resolves the versions on the login node; a login node has none'
export PATH=$HOME/.local/bin:$PATH
module load miniforge3/23.11.0-0
python3 -m venv ~/uv
~/uv/bin/pip install -q --disable-pip-version-check uv
mkdir -p ~/.local/bin
ln -sf ~/uv/bin/uv ~/.local/bin/uv

step '1 Prepare the environment: versions, wheels and sources with their hashes, by name'
hpctrain check $run
hpctrain lock $run
hpctrain plan $run

step '1.1 On the login node: modules, conda, what needs the network; 1.2 on a compute node: what needs ROCm'
hpctrain build $run --wait

step '2 Model and tokenizer, 3 the data and its Arrow file: snapshots on the login node'
hpctrain stage $run --wait
find "$PROJWORK"/hpctrain/assets -name '*.arrow' -o -name '*.safetensors' -o -name 'tokenizer.json' -o -name '*.pth'

step '4 Configure the job: nothing to edit; what it will ask and set'
hpctrain plan $run --explain DS_ENV_FILE
hpctrain plan $run --explain LOCAL_RANK

step '5 Submit, and watch it under the name of the document'
hpctrain submit $run --locked --wait
hpctrain status $name
here=$(find "$MEMBERWORK"/hpctrain/runs/$name -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort -V | tail -n 1)
tail -n 3 "$here"/logs/$name-[0-9]*.o

step '6 Inspect: the newest adapter, and the model it was merged into'
checkpoints=$MEMBERWORK/hpctrain/checkpoints/$name/$(head -n 1 "$here"/id)
find "$checkpoints" -name 'adapter_model.safetensors' -o -name 'model.safetensors' | sort -V
find "$checkpoints" -name '*.safetensors' -exec sha256sum {} + | sort -k2

step '7 Troubleshooting: what DeepSpeed would give to other nodes, for this run alone'
cut -d= -f1 "$here"/steps/train/deepspeed.env
ls ~/.deepspeed_env 2>/dev/null || echo 'no ~/.deepspeed_env'

step 'What is there now'
hpctrain status $name --json
sha256sum "$PROJWORK"/hpctrain/env/wheel-*/*.whl
