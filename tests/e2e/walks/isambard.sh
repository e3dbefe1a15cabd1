#!/bin/bash
# The Isambard document (GPT-NeoX), step by step, on a login node of Isambard-AI.
# usage: isambard.sh     in a folder with neox-pretrain.toml, its two files, corpus.jsonl, tokenizer/ and model/
set -euo pipefail
run=neox-pretrain.toml
data=${WALK_DATA:-hpctrain data}
step() { printf '\n== %s\n' "$*"; }

step '0 uv, which resolves packages: a wheel of the index, nothing is piped into a shell'
module load cray-python # the system's own Python is too old
python3 -m venv ~/tools
~/tools/bin/pip install --quiet uv
PATH=~/tools/bin:$PATH

step '1 Environment: torch first, then what is compiled against it, on a compute node'
hpctrain check $run
hpctrain lock $run
hpctrain plan $run
hpctrain build $run --wait

step '2 The NCCL library: which one, and why'
hpctrain plan $run --explain LD_PRELOAD

step '3 Verify that CUDA works'
hpctrain exec $run -- python -c "import torch; print(f'CUDA: {torch.cuda.is_available()}, {torch.cuda.device_count()} GPU')"

step '4 Data: the unified pipeline, and the command of old'
$data prepare_hf_dataset --dataset corpus.jsonl --split train --output-base . --vocab-file tokenizer/tokenizer.json \
  --hf-tokenizer tokenizer --num-proc 1
mkdir tokens
$data preprocess_data --input corpus.jsonl --output-prefix tokens/tokens --vocab tokenizer/tokenizer.json \
  --dataset-impl mmap --tokenizer-type HFTokenizer --append-eod --workers 1

step '5 Checkpoint: Hugging Face to NeoX'
hpctrain convert model --to neox --iteration 5 -o neox-start

step '6 Submit a training job, two nodes'
hpctrain submit $run --locked --wait

step '7 Monitor'
hpctrain status neox-pretrain
hpctrain logs neox-pretrain
here=$(find "$SCRATCHDIR"/hpctrain/runs/neox-pretrain -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort -V | tail -n 1)
tail -n 3 "$here"/logs/neox-pretrain-[0-9]*.out

step '8 Checkpoint: NeoX to Hugging Face'
hpctrain convert neox-pretrain --to hf -o hf-model

step '9 All checkpoints of an experiment to the hub: what would go there'
hpctrain publish neox-pretrain geodesic-research/walk --dry-run

step '10 A tunnel for the editor, and its end'
read -ra cli <<<"${WALK_CLI:-}" # where the program comes from; nothing: from its makers
hpctrain tunnel $run "${cli[@]}"
hpctrain cancel neox-pretrain-tunnel

step 'What is there now'
sha256sum tokens/* corpus*_train/*_text_document.* model/model.safetensors hf-model/*.safetensors
