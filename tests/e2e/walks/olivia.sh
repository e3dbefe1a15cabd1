#!/bin/bash
# The document "Olivia Training Environment" as hpctrain commands, from nothing to a trained model.
#
# usage: olivia.sh TOKEN        as an ordinary user on Olivia's twin, whose registry has the image and whose git host has the
#                               private repository that TOKEN opens: tests/twin/test_walk_olivia.py puts them there
#
# Every numbered step of the document stands above the command that does it. Stand-ins, each named where it is used:
#   image      an image of the twin's own programs under the name of NVIDIA's; the twin's nodes are x86_64, and so its
#              site file says: the names end in amd64, on Olivia in arm64
#   packages   small wheels in a folder with the names of the document's, instead of the index
#   trainer    train.py on the CPU, which learns a word table, instead of Qwen3-0.6B on a GPU; it takes the
#              document's arguments and reads the document's fields
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
example=$here/../../twin/example
account=nn9999k
project=/cluster/projects/$account
work=/cluster/work/projects/$account/$USER
walk=$work/walk
say() { printf '\n== %s\n' "$*"; }

wait_for() { # RUN: until it is over, ten minutes at most; its logs when it did not end well
  local state=
  for ((n = 0; n < 300; n++)); do
    state=$(hpctrain status "$1" --json 2>/dev/null | sed -n 's/.*"state": "\([a-z]*\)", "age_s.*/\1/p')
    [[ $state != "done" ]] || return 0
    [[ $state != failed && $state != cancelled ]] || break
    sleep 2
  done
  echo "$1 ended as ${state:-unknown}" >&2
  tail -n 20 "$work/runs/$1"/*/logs/*.log >&2
  return 1
}

rm -rf -- "$walk"
mkdir -p -- "$walk"
cd -- "$walk"
printf 'arch = "x86_64"\n[hardware]\ngpus_per_node = 1\n[storage.env]\nowners = ["alice", "bob"]\n[storage.images]\nowners = ["alice", "bob"]\n' >site.toml
export HPCTRAIN_SITE=$walk/site.toml

say "1. clone the private training repository: the user's own git credentials open it, [code] git pins its commit"
printf 'https://%s:%s@github.com\n' "$USER" "$1" >~/.git-credentials
chmod 600 ~/.git-credentials
git config --global credential.helper store

say "2. base directories: the roles of the facts; hpctrain makes them"
hpctrain clusters olivia | grep /cluster/

say "4. requirements, in the document's own file"
printf 'trl\ndatasets\nsacrebleu\nwandb\n' >requirements_simplified.txt
python3 "$example/wheels.py" "$project/wheels" trl==0.23.1 datasets==4.4.1 sacrebleu==2.5.1 wandb==0.21.1

python3 - <<'DATA'
import json
pairs = [("jeg heter ikke", "eg heiter ikkje"), ("hva er en bok", "kva er ei bok"), ("jeg er her", "eg er her")]
for name, (source, target) in {"train": ("nb", "nn"), "eval": ("nb", "nn_husnorm")}.items():
    with open(f"{name}.jsonl", "w") as file:
        for nb, nn in pairs * 40:
            file.write(json.dumps({source: nb, target: nn}) + "\n")
DATA
cat >run.toml <<RUN
name = "walk"
cluster = "olivia"
secrets = ["huggingface"]

[resources]
gpus = 1
time = "5m"
account = "$account"

[environment]
requirements = "requirements_simplified.txt"

[environment.apptainer]
image = "nvcr.io/nvidia/pytorch:25.06-py3"
find_links = ["$project/wheels"]
index_url = "file://$project/wheels/none"

[code]
git = "https://github.com/NationalLibraryOfNorway/nb-gpt-posttrain.git"
rev = "main"

[assets]
dataset = { path = "train.jsonl" }
evaluation = { path = "eval.jsonl" }

[train]
use = "command"

[train.command]
argv = [
  "python", "train.py", "--model", "stand-in", "--wandb_project", "olivia_test", "--run_name", "test1",
  "--train_dataset", "{assets.dataset}:train", "--eval_dataset", "{assets.evaluation}:validation",
  "--train_source_field", "nb", "--train_target_field", "nn",
  "--eval_source_field", "nb", "--eval_target_field", "nn_husnorm",
  "--per_device_train_batch_size", "8", "--per_device_eval_batch_size", "8", "--learning_rate", "2e-5",
  "--warmup_steps", "10000", "--num_train_epochs", "6", "--eval_steps", "5000", "--save_steps", "50000",
  "--logging_steps", "1000", "--output_dir", "{checkpoints}",
]
RUN

say "3. base container: lock asks the registry for the digest, submit pulls it, once for the project"
hpctrain lock run.toml

say "10. the token, where the document keeps it (before 5, since submitting needs it)"
mkdir -p ~/.huggingface
chmod 700 ~/.huggingface
printf 'hf_walk\n' >~/.huggingface/token

say "5. build the overlay, and 6. run the training: one command"
hpctrain submit run.toml

say "6. monitor"
hpctrain status walk
wait_for walk
hpctrain logs walk | tail -n 5

say "7. the overlay: its Python lies at /user-software"
for overlay in "$project"/hpctrain/overlays/myenv_*_amd64.sqsh; do unsquashfs -cat "$overlay" pyvenv.cfg; done

say "8. another package: a second overlay, the first stays, the run picks its own"
printf 'trl\ndatasets\nsacrebleu\nwandb\npeft\n' >requirements_simplified.txt
python3 "$example/wheels.py" "$project/wheels" peft==0.17.1
sed 's/^name = "walk"/name = "walk-peft"/' run.toml >peft.toml
hpctrain submit peft.toml
wait_for walk-peft
grep -ho 'myenv_[0-9a-f]*_amd64.sqsh' "$work"/runs/walk*/*/steps/train/rank.sh | sort -u

say "9. proxy, and 10. token: as the task saw them"
cat "$work"/checkpoints/walk/*/seen.json

say "11. logs and outputs"
ls "$work"/runs/walk/*/logs
tail -n 1 "$work"/logs/walk_*.out

say "12. named artifacts and hashes"
cd "$project/hpctrain"
sha256sum containers/pytorch-*_amd64.sif overlays/myenv_*_amd64.sqsh containers/packages-*.txt
cd "$work/checkpoints"
sha256sum walk*/*/model.json
