"""Changes of good files; what the trainers' own loaders said of each stands in data/verdicts.json."""

from __future__ import annotations

from pathlib import Path

import attrs

DATA = Path(__file__).parent / "data"


@attrs.frozen
class Case:
    """One text of the files replaced by another, and for how many GPUs."""

    name: str
    old: str
    new: str
    gpus: int = 64


RECIPE = "recipe: TrainFinetuneRecipeForNextTokenPrediction\n"
FULL = "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction"
DDP = "strategy: ddp\n  dp_size: none\n  tp_size: 2"

NANOTRON = (
    Case("as it is", "", ""),
    Case("rate without a dot", "learning_rate: 0.001", "learning_rate: 1e-3"),
    Case("rate with a dot", "learning_rate: 0.001", "learning_rate: 1.0e-3"),
    Case("rate quoted", "learning_rate: 0.001", 'learning_rate: "0.001"'),
    Case("rate whole", "learning_rate: 0.001", "learning_rate: 1"),
    Case("decay as text", "min_decay_lr: 0.00001", "min_decay_lr: 1e-5"),
    Case("decay null", "min_decay_lr: 0.00001", "min_decay_lr: null"),
    Case("epsilon as text", "adam_eps: 1.0e-08", "adam_eps: 1e-8"),
    Case("heads not shared", "  tp: 4", "  tp: 5"),
    Case("too many tensor ranks", "num_key_value_heads: 12", "num_key_value_heads: 3"),
    Case("heads no multiple", "num_key_value_heads: 12", "num_key_value_heads: 8"),
    Case("more kv heads than heads", "num_key_value_heads: 12", "num_key_value_heads: 24"),
    Case("grouped heads", "num_key_value_heads: 12", "num_key_value_heads: 4"),
    Case("kv heads null", "num_key_value_heads: 12", "num_key_value_heads: null"),
    Case("unknown key at the top", "profiler: null", "profiler: null\nfoo: 1"),
    Case("unknown key in tokens", "micro_batch_size: 64", "micro_batch_size: 64\n  micro_batch: 1"),
    Case("unknown key in general", "project: debug", "project: debug\n  projekt: x"),
    Case("unknown key in parallelism", "  pp: 1", "  pp: 1\n  cp: 1"),
    Case("unknown key in the model", "use_cache: true", "use_cache: true\n    head_size: 64"),
    Case("missing steps", "  train_steps: 1500\n", ""),
    Case("missing project", "  project: debug\n", ""),
    Case("missing dp", "  dp: 2\n", ""),
    Case("missing zero_stage", "  zero_stage: 1\n", ""),
    Case("missing interval", "  checkpoint_interval: 1500\n", ""),
    Case("missing rate", "    learning_rate: 0.001\n", ""),
    Case("missing warm-up style", "    lr_warmup_style: linear\n", ""),
    Case("missing decay style", "    lr_decay_style: cosine\n", ""),
    Case("missing clipping", "  clip_grad: 1.0\n", ""),
    Case("missing data seed", "      seed: 42\n", ""),
    Case("clipping null", "clip_grad: 1.0", "clip_grad: null"),
    Case("warm-up style", "lr_warmup_style: linear", "lr_warmup_style: cosine"),
    Case("decay style", "lr_decay_style: cosine", "lr_decay_style: exponential"),
    Case("decay 1-sqrt", "lr_decay_style: cosine", "lr_decay_style: 1-sqrt"),
    Case("log level", "log_level: info", "log_level: verbose"),
    Case("pipeline engine", "pp_engine: 1f1b", "pp_engine: gpipe"),
    Case("pipeline engine afab", "pp_engine: 1f1b", "pp_engine: afab"),
    Case("tensor mode", "tp_mode: reduce_scatter", "tp_mode: scatter"),
    Case("tensor mode in capitals", "tp_mode: reduce_scatter", "tp_mode: ALL_REDUCE"),
    Case("type of the weights", "dtype: bfloat16", "dtype: bf16"),
    Case("half weights", "dtype: bfloat16", "dtype: float16"),
    Case("no stage at step 1", "start_training_step: 1", "start_training_step: 2"),
    Case("steps as text", "train_steps: 1500", 'train_steps: "1500"'),
    Case("steps as a fraction", "train_steps: 1500", "train_steps: 1.5e+3"),
    Case("truth as a word", "use_cache: true", "use_cache: yes"),
    Case("truth as a number", "use_cache: true", "use_cache: 1"),
    Case("name read as False", "text_column_name: text", "text_column_name: no"),
    Case("name quoted", "text_column_name: text", 'text_column_name: "no"'),
    Case("time to the base of 60", "project: debug", "project: 12:30:00"),
    Case("dummy data", "dataset:\n        hf_data", "dataset: null\n      x:\n        hf_data"),
    Case("init without a way", "    std: 0.025", "    sigma: 0.025"),
    Case("init of a checkpoint", "    std: 0.025", "    path: /x"),
    Case("init with mup", "    std: 0.025", "    use_mup: true"),
    Case("no tokens at all", 'tokenizer_name_or_path: "{assets.tokenizer}"', "tokenizer_name_or_path: null"),
    Case("decay style null", "lr_decay_style: cosine", "lr_decay_style: null"),
    Case("log level in capitals", "log_level: info", "log_level: INFO"),
    Case("engine in capitals", "pp_engine: 1f1b", "pp_engine: 1F1B"),
    Case("batch of False", "micro_batch_size: 64", "micro_batch_size: off"),
    Case("a list for a number", "micro_batch_size: 64", "micro_batch_size: [64]"),
    Case("an octal vocabulary", "vocab_size: 50257", "vocab_size: 0142121"),
    Case("seed null", "  seed: 42\n  step", "  seed: null\n  step"),
    Case("seed as text", "  seed: 42\n  step", "  seed: abc\n  step"),
)

NEOX = (
    Case("as it is", "", ""),
    Case("one GPU", "", "", 1),
    Case("model ranks do not fit", '"model_parallel_size": 1', '"model_parallel_size": 3', 8),
    Case("pipeline does not fit", '"pipe_parallel_size": 1', '"pipe_parallel_size": 3', 8),
    Case("two model ranks", '"model_parallel_size": 1', '"model_parallel_size": 2', 8),
    Case("no pipeline", '"pipe_parallel_size": 1', '"pipe_parallel_size": 0', 8),
    Case("batch does not multiply", '"train_iters"', '"train_batch_size": 33,\n  "train_iters"', 8),
    Case("batch multiplies", '"train_iters"', '"train_batch_size": 128,\n  "train_iters"', 8),
    Case("batch smaller than the ranks", '"gradient_accumulation_steps": 1', '"train_batch_size": 64', 8),
    Case("batch gives the passes", '"gradient_accumulation_steps": 1', '"train_batch_size": 256', 8),
    Case(
        "batch gives null passes",
        '"gradient_accumulation_steps": 1',
        '"gradient_accumulation_steps": null, "train_batch_size": 256',
        8,
    ),
    Case("no batch at all", '"train_micro_batch_size_per_gpu": 16,', "", 8),
    Case("only a batch", '"train_micro_batch_size_per_gpu": 16', '"train_batch_size": 64', 8),
    Case("batch of one", '"train_micro_batch_size_per_gpu": 16', '"train_batch_size": 4', 8),
    Case(
        "micro batch of 0", '"train_micro_batch_size_per_gpu": 16', '"train_micro_batch_size_per_gpu": 0', 8
    ),
    Case("heads do not divide", '"num_attention_heads": 32', '"num_attention_heads": 30'),
    Case("sequence too long", '"seq_length": 2048', '"seq_length": 4096'),
    Case("sequence shorter", '"seq_length": 2048', '"seq_length": 1024'),
    Case("rate ends above its start", '"min_lr": 0.000012', '"min_lr": 0.01'),
    Case("min_lr as text", '"min_lr": 0.000012', '"min_lr": 6e-5'),
    Case("min_lr with a dot", '"min_lr": 0.000012', '"min_lr": 6.0e-5'),
    Case("rate as text", '"lr": 0.0003', '"lr": 3e-4'),
    Case("rate too low", '"lr": 0.0003', '"lr": 0.00001'),
    Case("layers as text", '"num_layers": 32', '"num_layers": "32"'),
    Case("layers missing", '"num_layers": 32,', ""),
    Case("hidden size missing", '"hidden_size": 4096,', ""),
    Case("heads missing", '"num_attention_heads": 32,', ""),
    Case("positions missing", '"max_position_embeddings": 2048,', ""),
    Case("unknown key", '"train_iters": 119209', '"train_iters": 119209,\n  "train_itters": 1'),
    Case("dashes", '"train_iters": 119209', '"train-iters": 119209'),
    Case("iterations as a fraction", '"train_iters": 119209', '"train_iters": 1.0e+5'),
    Case("warm-up whole", '"warmup": 0.01', '"warmup": 0'),
    Case("truth as text", '"no_weight_tying": true', '"no_weight_tying": "true"'),
    Case("truth as a number", '"no_weight_tying": true', '"no_weight_tying": 1'),
    Case("truth as a word", '"no_weight_tying": true', '"no_weight_tying": yes'),
    Case("activation unknown", '"activation": "gelu"', '"activation": "gelo"'),
    Case("activation in capitals", '"activation": "gelu"', '"activation": "GELU"'),
    Case("norm unknown", '"norm": "layernorm"', '"norm": "batchnorm"'),
    Case("precision unknown", '"precision": "bfloat16"', '"precision": "bf16"'),
    Case("precision fp16", '"precision": "bfloat16"', '"precision": "fp16"'),
    Case("fp16 block contradicts", '"hidden_dropout": 0', '"fp16": {"enabled": true}, "hidden_dropout": 0'),
    Case("fp16 without enabled", '"hidden_dropout": 0', '"fp16": {"loss_scale": 0}, "hidden_dropout": 0'),
    Case("tokenizer unknown", '"HFTokenizer"', '"LlamaTokenizer"'),
    Case("attention of too few layers", '[[["flash"], 32]]', '[[["flash"], 16]]'),
    Case("attention of all layers", '[[["flash"], 32]]', '[[["flash"], "all"]]'),
    Case("attention in two kinds", '[[["flash"], 32]]', '[[["flash", "global"], 16]]'),
    Case("grouped heads", '"num_layers": 32', '"num_kv_heads": 8, "num_layers": 32'),
    Case("grouped heads do not divide", '"num_layers": 32', '"num_kv_heads": 7, "num_layers": 32'),
    Case("zero without a stage", '"stage": 1, ', ""),
    Case("zero stage 2", '"stage": 1', '"stage": 2'),
    Case(
        "zero missing", '"zero_optimization": {"stage": 1, "overlap_comm": true, "reduce_scatter": true},', ""
    ),
    Case(
        "experts with stage 2",
        '"stage": 1',
        '"stage": 2}, "moe_num_experts": 8, "data_types": {"grad_accum_dtype": "fp32"',
    ),
    Case("optimizer without a type", '"type": "Adam", ', ""),
    Case("save without an interval", '"checkpoint_factor": 5000,', ""),
    Case("save at named steps", '"checkpoint_factor": 5000', '"extra_save_iters": [10]'),
    Case("interval as a fraction", '"checkpoint_factor": 5000', '"checkpoint_factor": 1.5'),
    Case(
        "train paths alone",
        '"data_path": "/projects/a5k/corpus/corpus_text_document"',
        '"train_data_paths": ["/a"]',
    ),
    Case(
        "paths for all splits",
        '"data_path": "/projects/a5k/corpus/corpus_text_document"',
        '"train_data_paths": ["/a"], "valid_data_paths": ["/b"], "test_data_paths": ["/c"]',
    ),
    Case(
        "paths and data_path",
        '"data_impl"',
        '"train_data_paths": ["/a"], "valid_data_paths": ["/b"], "test_data_paths": ["/c"], "data_impl"',
    ),
    Case(
        "weights of another length",
        '"data_path": "/projects/a5k/corpus/corpus_text_document"',
        '"train_data_paths": ["/a"], "train_data_weights": [1.0, 2.0], "valid_data_paths": ["/b"],'
        ' "test_data_paths": ["/c"]',
    ),
    Case("labels with data_path", '"data_impl"', '"train_label_data_paths": ["/a"], "data_impl"'),
    Case("data path as a list", '"/projects/a5k/corpus/corpus_text_document"', '["/a"]'),
    Case("training unknown", '"data_impl"', '"train_impl": "ppo", "data_impl"'),
    Case("time to the base of 60", '"split": "100,0,0"', '"split": 12:30:00'),
    Case("interval null", '"log_interval": 1', '"log_interval": null'),
    Case("a key twice", '"log_interval": 1', '"log_interval": 1, "log_interval": 2'),
    Case("a key in two files", '"log_interval": 1', '"log_interval": 1, "num_layers": 32'),
    Case("two spellings in two files", '"log_interval": 1', '"log_interval": 1, "num-layers": 16'),
)

OUT = '  exclude_modules: ["*.out_proj"]\n'
AUTOMODEL = (
    Case("as it is", "", "", 4),
    Case("one GPU", "", "", 1),
    Case("recipe missing", RECIPE, "", 4),
    Case("recipe as a table", RECIPE, f"recipe:\n  _target_: {FULL}\n", 4),
    Case("recipe by its full name", RECIPE, f"recipe: {FULL}\n", 4),
    Case("recipe unknown", "TrainFinetuneRecipeForNextTokenPrediction", "TrainFinetune", 4),
    Case("batch does not divide", "global_batch_size: 8", "global_batch_size: 6", 4),
    Case("batch smaller than the ranks", "global_batch_size: 8", "global_batch_size: 2", 4),
    Case("batch of 0", "global_batch_size: 8", "global_batch_size: 0", 4),
    Case("batch below 0", "global_batch_size: 8", "global_batch_size: -8", 4),
    Case("batch as text", "global_batch_size: 8", 'global_batch_size: "8"', 4),
    Case("batch as a word", "global_batch_size: 8", "global_batch_size: eight", 4),
    Case("batch missing", "  global_batch_size: 8\n", "", 4),
    Case("local batch of 0", "local_batch_size: 1", "local_batch_size: 0", 4),
    Case("local batch too large", "local_batch_size: 1", "local_batch_size: 4", 4),
    Case("local batch fits", "local_batch_size: 1", "local_batch_size: 2", 4),
    Case("local batch missing", "  local_batch_size: 1\n", "", 4),
    Case("steps of 0", "max_steps: 750", "max_steps: 0", 4),
    Case("steps below 0", "max_steps: 750", "max_steps: -1", 4),
    Case("steps missing", "  max_steps: 750\n", "", 4),
    Case("steps as text", "max_steps: 750", "max_steps: many", 4),
    Case("checkpoints every 0", "ckpt_every_steps: 100", "ckpt_every_steps: 0", 4),
    Case("checkpoints null", "ckpt_every_steps: 100", "ckpt_every_steps: null", 4),
    Case("validation every 0", "max_steps: 750", "max_steps: 750\n  val_every_steps: 0", 4),
    Case("epochs of 0", "max_steps: 750", "max_steps: 750\n  num_epochs: 0", 4),
    Case("unknown key of the scheduler", "max_steps: 750", "max_steps: 750\n  warmup: 3", 4),
    Case("three tensor ranks", "tp_size: 1", "tp_size: 3", 4),
    Case("two tensor ranks", "tp_size: 1", "tp_size: 2", 4),
    Case("two context ranks", "cp_size: 1", "cp_size: 2", 4),
    Case("too many tensor ranks", "tp_size: 1", "tp_size: 8", 4),
    Case("copies said wrongly", "dp_size: none", "dp_size: 3", 4),
    Case("copies said rightly", "dp_size: none", "dp_size: 4", 4),
    Case("copies null", "dp_size: none", "dp_size: null", 4),
    Case("experts do not divide", "cp_size: 1", "cp_size: 1\n  ep_size: 3", 4),
    Case("experts on every rank", "cp_size: 1", "cp_size: 1\n  ep_size: 4", 4),
    Case("pipeline without its section", "cp_size: 1", "cp_size: 1\n  pp_size: 2", 4),
    Case("strategy unknown", "strategy: fsdp2", "strategy: zero3", 4),
    Case("strategy ddp", "strategy: fsdp2", "strategy: ddp", 4),
    Case("ddp with tensor ranks", "strategy: fsdp2\n  dp_size: none\n  tp_size: 1", DDP, 4),
    Case("unknown key of the strategy", "cp_size: 1", "cp_size: 1\n  zero_stage: 3", 4),
    Case("recomputation as a word", "cp_size: 1", "cp_size: 1\n  activation_checkpointing: maybe", 4),
    Case("recomputation selective", "cp_size: 1", "cp_size: 1\n  activation_checkpointing: selective", 4),
    Case("target without a module", "_target_: torch.optim.AdamW", "_target_: AdamW", 4),
    Case("target of no module", "torch.optim.AdamW", "torch.optimizers.AdamW", 4),
    Case("target of no class", "torch.optim.AdamW", "torch.optim.AdamV", 4),
    Case("optimizer without a target", "  _target_: torch.optim.AdamW\n", "", 4),
    Case("rate as text", "lr: 1.0e-5", "lr: 1e-5", 4),
    Case("rate as a word", "lr: 1.0e-5", "lr: small", 4),
    Case("unknown key of the optimizer", "weight_decay: 0.01", "weight_decay: 0.01\n  momentum: 0.9", 4),
    Case("unknown key of the adapters", "  dim: 8", "  dim: 8\n  rank: 8", 4),
    Case("adapters on every layer", OUT, "  match_all_linear: true\n", 4),
    Case("adapters on every layer but some", OUT, f"{OUT}  match_all_linear: true\n", 4),
    Case("adapters chosen and excluded", OUT, f'{OUT}  target_modules: ["*_proj"]\n', 4),
    Case("adapters on every layer of some", OUT, '  match_all_linear: true\n  target_modules: ["*"]\n', 4),
    Case("adapters of one pattern", OUT, '  target_modules: "*_proj"\n', 4),
    Case("adapters by default", OUT, "", 4),
    Case("unknown key of the rate", "lr_decay_style: cosine", "lr_decay_style: cosine\n  warmup: 10", 4),
    Case("decay style unknown", "lr_decay_style: cosine", "lr_decay_style: exponential", 4),
    Case("unknown key of the checkpoint", "save_consolidated: true", "save_consolidated: true\n  keep: 3", 4),
    Case("format of the weights", "model_save_format: safetensors", "model_save_format: pickle", 4),
    Case(
        "consolidated with torch's format",
        "model_save_format: safetensors",
        "model_save_format: torch_save",
        4,
    ),
    Case("unknown section", RECIPE, f"{RECIPE}trainer:\n  x: 1\n", 4),
    Case("a tab", "  seed: 42", "\tseed: 42", 4),
    Case("a key twice", "  seed: 42", "  seed: 42\n  seed: 43", 4),
)

CASES = {"automodel": AUTOMODEL, "nanotron": NANOTRON, "neox": NEOX}
NEOX_FILES = ("isambard_model.yml", "isambard_run.yml")
_FILES = {"automodel": ("leonardo.yaml",), "nanotron": ("alps.yaml",), "neox": NEOX_FILES}


def text_of(trainer: str, case: Case) -> dict[str, str]:
    """The trainer's files with one text replaced, in the last file that has it."""
    files = {name: (DATA / name).read_text() for name in _FILES[trainer]}
    if trainer == "automodel":
        files["leonardo.yaml"] += RECIPE
    target = [name for name, text in files.items() if case.old in text][-1]
    files[target] = files[target].replace(case.old, case.new, 1) if case.old else files[target]
    return files
