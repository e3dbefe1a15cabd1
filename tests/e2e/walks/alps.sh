#!/bin/bash
# The Alps document (a nanotron tutorial), step by step, on a login node of Alps.
# usage: alps.sh     in a folder with nanotron-wikitext.toml and nanotron-wikitext.yaml
set -euo pipefail
run=nanotron-wikitext.toml
step() { printf '\n== %s\n' "$*"; }

step '1 Set up podman: nothing to write, its store belongs to the step; the plan says what will happen'
hpctrain check $run
hpctrain plan $run

step '2 Modify the NGC container: build it and import it, in one job'
hpctrain lock $run
hpctrain build $run --wait
echo 'the base was asked what it has: its list is there now, and pins the rest'
hpctrain lock $run
hpctrain build $run --wait
if hpctrain plan $run | grep 'not pinned'; then exit 1; fi

step '3 Set up an EDF: the run has its own; this one is for jobs by hand'
hpctrain edf install nanotron $run
# shellcheck disable=SC2016  # expanded inside the container
srun --environment=nanotron -t 2 -N1 -n1 bash -c 'echo "inside: $(python3 -c "import sys; print(sys.prefix)")"'

step '4 Prepare the training job: nanotron, its configuration, the data'
hpctrain stage $run --wait

step '5 Launch: two nodes, and what it printed'
hpctrain submit $run --locked --wait
hpctrain status nanotron-wikitext
hpctrain logs nanotron-wikitext

step 'What is there now'
hpctrain status nanotron-wikitext --json
sha256sum "$SCRATCH"/ce-images/*.sqsh
find /capstor/scratch/cscs/"$USER"/hpctrain/checkpoints/nanotron-wikitext -name model_config.json
