"""`neox`: its command, its one file, what is said before the queue, and how its log is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.model.run import Code
from hpctrain.model.step import Ranks
from hpctrain.model.words import Cmd, Var
from hpctrain.render import shell
from hpctrain_plugins.trainers import neox
from hpctrain_plugins.trainers.external.config import Machine
from hpctrain_plugins.trainers.neox import size, start
from hpctrain_plugins.trainers.neox.files import config_of
from hpctrain_plugins.trainers.neox.rules import RULES
from tests.patience import PATIENCE
from tests.trainers import plans
from tests.trainers.external import runs
from tests.trainers.external.runs import codes, problems, resolved, spec, train

MODEL, RUN = "isambard_model.yml", "isambard_run.yml"
DATA_PATH = "/projects/a5k/corpus/corpus_text_document"
CODE = Code(git="https://github.com/EleutherAI/gpt-neox", rev="ea7aefd8")
LOG = (  # from source: megatron/logging.py at ea7aefd8
    " samples/sec: 145.321 | iteration       10/  320000 | elapsed time per iteration (ms): 220.2 | "
    "learning rate: 1.875E-06 | approx flops per GPU: 446.0TFLOPS | lm_loss: 1.087654E+01 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def _run(old: str = "", new: str = "", **fields: Any) -> Any:
    texts = {name: (runs.DATA / name).read_text() for name in (MODEL, RUN)}
    if old:
        name = next(name for name, text in texts.items() if old in text)
        texts[name] = texts[name].replace(old, new, 1)
    return spec(neox, texts=texts, **{"code": CODE, **fields})


def test_the_document_is_right_on_its_own_machine() -> None:
    assert problems(neox, _run()) == []


def test_the_command_in_every_rank() -> None:
    answer = train(neox, _run())
    assert answer.ranks is Ranks.PER_GPU
    said = shell.words(answer.argv, plans.BINDING)
    assert said == 'python "${HPC_RUN}"/steps/train/neox_rank.py "${HPC_RUN}"/steps/train/neox.yml'
    (step,) = answer.before
    assert step.makes is not None
    assert answer.layer.task == (Cmd.of("cd", Var("HPC_SOURCE")),)
    assert answer.code_from == step.makes.loc
    env = {var.name: var for var in answer.layer.env}
    assert {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(env)
    assert "TORCH_EXTENSIONS_DIR" in env
    assert all(var.why for var in env.values())


def test_one_file_in_which_nothing_starts_ranks_elsewhere() -> None:
    values = resolved(train(neox, _run()), neox.FILE)
    assert (values["save"], values["load"]) == ("$HPC_CHECKPOINTS", "$HPC_CHECKPOINTS")
    assert values["deepspeed_slurm"] is False
    assert not set(values) & (neox.LAUNCHER - {"deepspeed_slurm"})
    assert values["num_layers"] == 32
    assert values["optimizer"]["params"] == {"lr": 0.0003, "betas": [0.9, 0.95], "eps": 1e-8}


def test_settings_lie_over_the_files_in_either_spelling() -> None:
    run = _run(options={"settings": {"train-iters": 20, "data_path": "{assets.corpus}/x"}})
    values = resolved(train(neox, run), neox.FILE)
    assert (values["train_iters"], values["data_path"]) == (20, "/projects/a5k/corpus/x")
    assert "train-iters" not in values
    (problem,) = problems(neox, spec(neox, code=CODE))
    assert (problem.code, problem.where) == ("trainer-missing", "train.neox.config")


def test_two_spellings_of_one_key_in_two_files() -> None:
    found = problems(neox, _run('"log_interval": 1', '"log_interval": 1,\n  "num-layers": 16'))
    (problem,) = [p for p in found if p.code == "trainer-conflict"]
    assert problem.message == f"num-layers already appears as num_layers in {MODEL}:3"
    assert problem.notes == ("first 32, now 16; NeoX does not see it and takes the second",)
    assert problem.span is not None
    assert problem.span.file == RUN
    assert problem.span.text.strip().startswith('"num-layers"')


def test_names_of_files_that_neox_mistakes() -> None:
    text = (runs.DATA / MODEL).read_text()
    rest = (runs.DATA / RUN).read_text()
    found = neox.check_config({"a/x.yml": text, "b/x.yml": rest}, 64, 0)
    assert [p.message for p in found if p.code == "trainer-conflict"] == [
        "two files are called x.yml; NeoX keeps a copy of each in every checkpoint"
    ]
    (problem,) = [p for p in neox.check_config({"x.yaml": text, "r.yml": rest}, 64, 0) if p.fatal]
    assert (problem.message, problem.hint) == (
        "NeoX would look for x.yaml.yml: it knows only .yml and .json",
        "x.yml",
    )


@pytest.mark.parametrize(
    ("old", "new", "where", "says", "hint"),
    [
        (
            '"model_parallel_size": 1',
            '"model_parallel_size": 3',
            "model_parallel_size",
            "8 GPUs do not fit pipe_parallel_size 1 x model_parallel_size 3",
            "",
        ),
        (
            '"train_iters"',
            '"train_batch_size": 33, "train_iters"',
            "train_batch_size",
            "train_batch_size 33 is not 16 rows x 1 passes x 8 model copies",
            "train_batch_size: 128",
        ),
        (
            '"num_attention_heads": 32',
            '"num_attention_heads": 30',
            "hidden_size",
            "hidden_size 4096 cannot be divided among 30 heads",
            "",
        ),
        (
            '"min_lr": 0.000012',
            '"min_lr": 6e-5',
            "min_lr",
            "min_lr is the text '6e-5': a number with an exponent needs a dot and a sign in YAML 1.1",
            "min_lr: 6.0e-5",
        ),
        (
            '"precision": "bfloat16"',
            '"precision": "bf16"',
            "precision",
            "precision is 'bf16'; one of fp16, fp32, bfloat16 is needed",
            "precision: bfloat16",
        ),
        (
            '"train_iters": 119209',
            '"train_itters": 119209',
            "train_itters",
            'unknown key "train_itters"',
            "train_iters",
        ),
        (
            '"save": "checkpoints"',
            '"save": "/projects/ck"',
            "save",
            "every run of this file would write to /projects/ck",
            'save: "{checkpoints}"',
        ),
        (
            DATA_PATH,
            "data/corpus",
            "data_path",
            "data_path is data/corpus, relative to the folder in which the trainer starts",
            'data_path: "{assets.dataset}/…"',
        ),
    ],
)
def test_what_stops_in_the_job_is_said_before(old: str, new: str, where: str, says: str, hint: str) -> None:
    found = {p.where: p for p in problems(neox, _run(old, new)) if p.fatal}
    assert (found[where].message, found[where].hint) == (says, hint)
    assert found[where].span is not None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"lr_decay_iters": 119209', '"lr_decay_iters": 100', "the rate is at its end after 100"),
        ('"pipe_parallel_size": 1', '"pipe_parallel_size": 2', "adds gradients up in bfloat16"),
    ],
)
def test_what_goes_on_in_silence_is_a_warning(old: str, new: str, says: str) -> None:
    found = problems(neox, _run(old, new))
    assert not codes(found, fatal=True)
    assert [says in p.message for p in found] == [True]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"model_parallel_size": 1', '"model_parallel_size": 8, "num_kv_heads": 4', "num_kv_heads 4 cannot"),
        ('"num_layers": 32', '"num_layers": 30', "attention_config is for 32 layers"),
        ('"warmup": 0.01', '"warmup": 1.0', "warmup is a share of all steps"),
        ('[["flash"], 32]', '[["mamba"], 32]], "x": [[1]', "unknown key"),
        ('"pipe_parallel_size": 1', '"pipe_parallel_size": 64', "do not fit pipe_parallel_size 64"),
    ],
)
def test_shapes_that_cannot_be_shared(old: str, new: str, says: str) -> None:
    assert any(says in p.message for p in problems(neox, _run(old, new)) if p.fatal)


def test_layers_without_heads() -> None:
    texts = '[["flash"], 32]', '[["rwkv"], 32]'
    more = _run(*texts, options={"settings": {"zero_optimization": {"stage": 3}, "model_parallel_size": 2}})
    said = [p.message for p in problems(neox, more) if p.code == "trainer-shape"]
    assert said == [
        "rwkv layers do not train with ZeRO stage 3",
        "rwkv layers need model_parallel_size 1, not 2",
    ]
    split = _run(
        options={"settings": {"sequence_parallel": True, "model_parallel_size": 8, "seq_length": 2044}}
    )
    assert ["as sequence_parallel does" in p.message for p in problems(neox, split)] == [True]


def test_a_fork_may_have_keys_of_its_own() -> None:
    run = _run('"log_interval": 1', '"log_interval": 1, "filter_data": true')
    assert codes(problems(neox, run), fatal=True) == ["trainer-key"]
    fork = attrs.evolve(
        run, code=Code(git="https://github.com/GeodesicResearch/geodesic-gpt-neox", rev="c43")
    )
    assert codes(problems(neox, fork), fatal=False) == ["trainer-key"]


def test_a_run_that_never_resumes() -> None:
    base = _run()
    fresh = attrs.evolve(base, checkpoint=attrs.evolve(base.checkpoint, resume="never"))
    assert resolved(train(neox, fresh), neox.FILE)["load"] is None


def test_the_numbers_of_the_document() -> None:
    numbers = train(neox, _run()).numbers
    assert (numbers.tokens_per_step, numbers.steps) == (8 * 16 * 2048, 119_209)
    assert numbers.parameters == 32 * 12 * 4096**2
    assert numbers.leaves_out[0] == "vocabulary: its size is in the tokenizer's file"
    assert any("NeoX prints HFU, which is 4/3 of MFU" in said for said in numbers.leaves_out)
    texts = _run('"HFTokenizer"', '"GPT2BPETokenizer"')
    assert train(neox, texts).numbers.parameters == 32 * 12 * 4096**2 + 2 * 4096 * 50304
    assert train(neox, _run('[["flash"], 32]', '[["mamba"], 32]')).numbers.parameters is None


@pytest.mark.parametrize(("mp", "padded"), [(1, 50304), (2, 50432), (4, 50688), (8, 51200)])
def test_the_vocabulary_is_padded_for_the_model_ranks(mp: int, padded: int) -> None:
    assert size.padded_vocabulary(config_of([], {"model_parallel_size": mp})) == padded


def test_our_flops_are_those_of_neox_without_recomputation() -> None:
    """NeoX counts 72 L h² (1 + S/6h + V/16Lh) a token: the same but for its head, 4.5 h V against 6 h V."""
    shape = {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "seq_length": 2048}
    config = config_of([], {**shape, "train_micro_batch_size_per_gpu": 4})
    layers, hidden, length, words = 12, 768, 2048, 50304
    theirs = 72 * layers * hidden**2 * (1 + length / (6 * hidden) + words / (16 * layers * hidden))
    ours = size.numbers(config, Machine(gpus=8)).flops_per_token
    assert ours == pytest.approx(theirs + 1.5 * hidden * words)


@pytest.mark.parametrize(("recomputed", "tflops"), [("true", 334.5), ("false", 446.0)])
def test_its_log_is_read_and_hfu_becomes_mfu(recomputed: str, tflops: float) -> None:
    run = _run('"checkpoint_activations": true', f'"checkpoint_activations": {recomputed}')
    (pattern,) = train(neox, run).progress
    match = re.search(pattern.regex, LOG)
    assert match
    row = {name: float(value) * pattern.scale.get(name, 1) for name, value in match.groupdict().items()}
    assert row == {
        "step": 10,
        "tokens_per_s": pytest.approx(145.321 * 2048),
        "lr": 1.875e-06,
        "tflops_per_gpu": tflops,
        "loss": 10.87654,
    }


def test_a_log_line_of_another_setting_is_read_too() -> None:
    (pattern,) = train(neox, _run()).progress
    short = " iteration      200/  320000 | elapsed time per iteration (ms): 1.0 | lm_loss: 2.5E+00 |"
    match = re.search(pattern.regex, short)
    assert match
    assert {k: v for k, v in match.groupdict().items() if v} == {"step": "200", "loss": "2.5E+00"}


def test_its_checkpoints_are_found(tmp_path: Path) -> None:
    from hpctrain_job.resume import newest

    layout = train(neox, _run()).checkpoints
    assert layout is not None
    for step, whole in ((5000, True), (10000, False)):
        (tmp_path / f"global_step{step}" / "configs").mkdir(parents=True)
        if whole:
            (tmp_path / f"global_step{step}" / layout.complete).touch()
    found = newest(tmp_path, layout.name, layout.complete)
    assert found is not None
    assert found.step == 5000


MEGATRON = """
class NeoXArgs:
    @classmethod
    def from_ymls(cls, files, overwrite_values):
        cls.files, cls.given = files, overwrite_values
        return cls()

    def get_deepspeed_main_args(self):
        script = self.given["user_script"]
        return ["--num_gpus", "4", script, "--deepspeed_config", "x", "--megatron_config", str(self.given)]
"""


def rank(tmp_path: Path, load: str = "") -> subprocess.CompletedProcess[str]:
    """One rank beside a stand-in of NeoX's two methods."""
    package = tmp_path / "code/megatron/neox_arguments"
    package.mkdir(parents=True, exist_ok=True)
    (package.parent / "__init__.py").touch()
    for name in ("fused_kernels/__init__.py", "data/__init__.py", "data/data_utils.py"):
        (package.parent / name).parent.mkdir(exist_ok=True)
        (package.parent / name).touch()
    (package / "__init__.py").write_text(f"{MEGATRON}\n    load, iteration = {load!r}, None\n")
    (tmp_path / "code/train.py").write_text("import sys\nprint(__name__, *sys.argv)\nsys.exit(7)\n")
    (tmp_path / start.FILE).write_text(start.SOURCE)
    return subprocess.run(
        [sys.executable, str(tmp_path / start.FILE), "/x/neox.yml"],
        cwd=tmp_path / "code",
        env={"PATH": os.environ["PATH"], "WORLD_SIZE": "64"},
        capture_output=True,
        text=True,
        timeout=30 * PATIENCE,
    )


def test_a_rank_goes_on_with_the_arguments_of_the_launcher(tmp_path: Path) -> None:
    """What is passed on is what deepy.py would pass."""
    done = rank(tmp_path)
    assert done.returncode == 7
    assert done.stdout.strip() == (
        "__main__ train.py --deepspeed_config x --megatron_config "
        "{'global_num_gpus': 64, 'user_script': 'train.py'}"
    )


def test_whole_checkpoints_without_latest_are_not_passed_over(tmp_path: Path) -> None:
    """NeoX itself would start at 0, without an error, and write over them."""
    saved = tmp_path / "saved"
    assert rank(tmp_path, str(saved)).returncode == 7
    (saved / "global_step10").mkdir(parents=True)
    assert rank(tmp_path, str(saved)).returncode == 7  # it was cut: there is nothing to go on from
    for step in (9, 10):
        (saved / f"global_step{step}/configs").mkdir(parents=True)
        (saved / f"global_step{step}/configs/neox.yml").touch()
    done = rank(tmp_path, str(saved))
    assert done.returncode == 1
    assert f"{saved} holds global_step10 and no file `latest`" in done.stderr
    assert f"printf global_step10 >{saved}/latest" in done.stderr
    (saved / "latest").write_text("global_step10")
    assert rank(tmp_path, str(saved)).returncode == 7


FAILURES = {  # measured with NeoXArgs on a CPU, or from source
    "neox-no-gpu": "AssertionError: Train batch size: 0 has to be greater than 0",
    "neox-batch": "AssertionError: Check batch related parameters. train_batch_size is not equal to micro",
    "neox-fresh-start": "Unable to load checkpoint.",
    "neox-number-as-text": "AttributeError: type object 'float' has no attribute '__origin__'",
    "neox-pkg-resources": "ModuleNotFoundError: No module named 'pkg_resources'",
    "nccl-symbol": "libtorch_cuda.so: undefined symbol: ncclCommShrink",
    "neox-kernel-arch": "ValueError: invalid literal for int() with base 10: '90a'",
    "neox-diverged": "| number of skipped iterations:   0 | number of nan iterations:   3 |",
}


def test_every_failure_has_its_rule() -> None:
    assert {rule.name for rule in RULES} == set(FAILURES)
    for name, text in FAILURES.items():
        assert next(rule.name for rule in RULES if re.search(rule.pattern, text)) == name
    assert not [rule for rule in RULES if re.search(rule.pattern, LOG)]


def test_both_ways_of_losing_pkg_resources_are_one_rule() -> None:
    """setuptools 82 has no such module; 70.3, which images bring, has one without that name."""
    (rule,) = [rule for rule in RULES if rule.name == "neox-pkg-resources"]
    assert re.search(rule.pattern, "ImportError: cannot import name 'packaging' from 'pkg_resources'")
