"""`nanotron`: its command, its one file, what is said before the queue, and how its log is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.model.layer import How
from hpctrain.model.run import Code, Resources
from hpctrain.model.step import Pin, Ranks
from hpctrain.model.words import Cmd, Join, Var
from hpctrain.render import shell
from hpctrain_plugins.trainers import nanotron
from hpctrain_plugins.trainers.external.config import Machine, merged
from hpctrain_plugins.trainers.nanotron import checks
from hpctrain_plugins.trainers.nanotron.rules import RULES
from hpctrain_plugins.trainers.yaml_file import read
from tests.trainers import plans
from tests.trainers.external import runs
from tests.trainers.external.runs import changed, codes, problems, resolved, spec, train

FILE = "alps.yaml"
HUB_HINT = (
    'tokenizer_name_or_path: "{assets.tokenizer}"      and  [assets]\n'
    'tokenizer = { hub = "openai-community/gpt2" }'
)
LOG = (  # from source: logging/base.py and trainer.py at 2411b022
    "iteration: 12 / 1500 | consumed_tokens: 786K | time_per_iteration_ms: 1.23K | tokens_per_sec: 53.3K | "
    "tokens_per_sec_per_gpu: 6.66K | global_batch_size: 65.5K | {}lm_loss: 8.91 | lr: 8e-05 | "
    "model_tflops_per_gpu: 5.41 | {}eta: 0:30:10"
)


def _run(*, texts: dict[str, str] | None = None, **fields: Any) -> Any:
    return spec(nanotron, *([] if texts else [FILE]), texts=texts, **fields)


def _said(old: str, new: str, *, gpus: int = 4, **fields: Any) -> list[Any]:
    return problems(nanotron, _run(texts=changed(FILE, old, new), **fields), gpus)


def test_the_document_is_right_on_its_own_machine() -> None:
    assert problems(nanotron, _run()) == []


def test_the_command_on_every_node() -> None:
    answer = train(nanotron, _run())
    assert answer.ranks is Ranks.PER_NODE
    assert shell.words(answer.argv, plans.BINDING).endswith(
        '--nproc-per-node 4 --master-addr "${HPC_HEAD}" --master-port "${HPC_PORT}" run_train.py'
        ' --config-file "${HPC_RUN}"/steps/train/nanotron.yaml'
    )
    assert answer.layer.task == (Cmd.of("cd", Var("HPC_SOURCE")),)
    env = {var.name: var for var in answer.layer.env}
    assert env["CUDA_DEVICE_MAX_CONNECTIONS"].value == "1"
    assert env["PYTHONPATH"].value == Join(Var("HPC_SOURCE"), "/src")
    assert env["PYTHONPATH"].how is How.PREPEND
    assert all(var.why for var in env.values())


def test_one_file_with_every_place_of_the_run() -> None:
    values = resolved(train(nanotron, _run()), nanotron.FILE)
    assert values["checkpoints"]["checkpoints_path"] == "$HPC_CHECKPOINTS"
    assert values["checkpoints"]["resume_checkpoint_path"] == "$HPC_CHECKPOINTS"
    dataset = values["data_stages"][0]["data"]["dataset"]
    assert dataset["hf_dataset_or_datasets"] == "/fs/assets/dataset-2"
    assert values["tokenizer"]["tokenizer_name_or_path"] == "/fs/assets/tokenizer-3"
    assert values["optimizer"]["learning_rate_scheduler"]["min_decay_lr"] == 0.00001


def test_settings_lie_over_the_file_and_can_stand_alone() -> None:
    run = _run(options={"settings": {"tokens": {"train_steps": 20}}})
    values = resolved(train(nanotron, run), nanotron.FILE)
    assert values["tokens"]["train_steps"] == 20
    assert values["tokens"]["sequence_length"] == 512
    assert train(nanotron, run).numbers.steps == 20
    whole = read((runs.DATA / FILE).read_text(), FILE, "nanotron").data
    alone = spec(nanotron, options={"settings": whole})
    assert problems(nanotron, alone) == []
    (problem,) = problems(nanotron, spec(nanotron))
    assert (problem.code, problem.where) == ("trainer-missing", "train.nanotron.config")


def test_a_fault_of_a_setting_lies_in_the_run_file() -> None:
    run = _run(options={"settings": {"tokens": {"sequence_length": 510}}})
    found = {p.where: p for p in problems(nanotron, run) if p.fatal}
    problem = found["train.nanotron.settings.tokens.sequence_length"]
    assert problem.span is None
    assert "cannot be shared by 4 tensor ranks" in problem.message


def test_the_numbers_of_the_document() -> None:
    numbers = train(nanotron, _run()).numbers
    assert numbers.parameters == 109_397_760
    assert (numbers.tokens_per_step, numbers.steps) == (65_536, 1500)
    assert (numbers.tokens_per_step or 0) * (numbers.steps or 0) == 98_304_000
    assert (numbers.vocabulary, numbers.vocabulary_padded) == (50257, 50260)
    # by hand: 6 x (12 x (4 x 768² + 3 x 768 x 1536) + 768 x 50260) + 12 x 12 x 512 x 768
    assert numbers.flops_per_token == 712_894_464
    qwen = changed(FILE, "is_llama_config: true", "is_starcoder2_config: true")
    assert train(nanotron, _run(texts=qwen)).numbers.parameters is None


@pytest.mark.parametrize(
    ("size", "multiple", "tp", "padded"),
    [
        (50257, 1, 4, 50260),
        (50257, 1, 1, 50257),
        (50257, 64, 4, 50432),
        (50260, 1, 4, 50260),
        (128, 128, 2, 256),
    ],
)
def test_the_vocabulary_is_padded_for_the_tensor_ranks(
    size: int, multiple: int, tp: int, padded: int
) -> None:
    model = {"model_config": {"vocab_size": size}, "make_vocab_size_divisible_by": multiple}
    config = merged("nanotron", [], {"model": model, "parallelism": {"tp": tp}})
    assert checks.padded_vocabulary(config) == (size, padded)


@pytest.mark.parametrize(
    ("nodes", "gpus", "stops"),
    [(2, 8, True), (2, 4, True), (4, 4, True), (1, 4, False), (3, 12, False), (4, 16, False), (2, 16, False)],
)
def test_the_local_rank_assertion(nodes: int, gpus: int, stops: bool) -> None:
    config = merged("nanotron", [], {})
    found = [f.code for f in checks.faults(config, Machine(gpus=gpus, nodes=nodes))]
    assert ("nanotron-local-rank" in found) is stops


@pytest.mark.parametrize(
    ("revision", "says"),
    [
        ("main", True),
        ("84eabd660f1d57f4e40d1f650dd66519bed90d38", True),
        ("5f8a52b08b702e206f31f2660e4b6f22ac328c95", None),
        ("b4376670", None),
        ("v0.4", None),
        ("my-branch", False),
    ],
)
def test_only_later_revisions_have_it(revision: str, says: bool | None) -> None:
    run = _run(code=Code(git="https://github.com/org/x", rev=revision))
    found = [p.fatal for p in problems(nanotron, run) if p.code == "nanotron-local-rank"]
    assert found == ([] if says is None else [says])


def test_the_pinned_commit_of_a_branch_counts() -> None:
    url = "https://github.com/org/x"
    run = _run(code=Code(git=url, rev="old-branch"))
    pin = Pin(f"{url}@old-branch", "git", "5f8a52b08b702e206f31f2660e4b6f22ac328c95")
    assert "nanotron-local-rank" in codes(problems(nanotron, run))
    assert "nanotron-local-rank" not in codes(problems(nanotron, run, pins=(pin,)))


def test_a_key_that_the_revision_does_not_know() -> None:
    new = "save_initial_state: false\n  save_final_state: true"
    (problem,) = _said("save_initial_state: false", new)
    assert problem.message == "the revision 5f8a52b0 does not know save_final_state and refuses it"
    later = Code(git="https://github.com/org/x", rev="2411b022")
    texts = changed(FILE, "save_initial_state: false", new)
    assert codes(problems(nanotron, _run(texts=texts, code=later)), fatal=True) == []


@pytest.mark.parametrize(
    ("old", "new", "where", "says", "hint"),
    [
        ("  dp: 2", "  dp: 3", "parallelism.dp", "dp 3 x pp 1 x tp 4 needs 12 GPUs, the run has 8", "dp: 2"),
        ("  tp: 4", "  tp: 5", "parallelism.dp", "dp 2 x pp 1 x tp 5 needs 10 GPUs, the run has 8", ""),
        ("  pp: 1", "  pp: 5", "parallelism.dp", "dp 2 x pp 5 x tp 4 needs 40 GPUs, the run has 8", ""),
        (
            "  pp: 1",
            "  pp: 1\n  context_parallel_size: 2",
            "parallelism.dp",
            "dp 2 x pp 1 x tp 4 x context_parallel_size 2 needs 16 GPUs, the run has 8",
            "dp: 1",
        ),
        (
            "sequence_length: 512",
            "sequence_length: 510",
            "tokens.sequence_length",
            "sequence_length 510 cannot be shared by 4 tensor ranks, as reduce_scatter does",
            "",
        ),
        (
            "lr_warmup_steps: 150",
            "lr_warmup_steps: 1500",
            "optimizer.learning_rate_scheduler.lr_warmup_steps",
            "lr_warmup_steps 1500 of 1500 train_steps: the rate never falls",
            "",
        ),
        (
            "hidden_size: 768",
            "hidden_size: 770",
            "model.model_config.hidden_size",
            "hidden_size 770 cannot be divided among 12 heads",
            "",
        ),
        (
            "checkpoints_path: checkpoints",
            "checkpoints_path: /scratch/ck",
            "checkpoints.checkpoints_path",
            "every run of this file would write to /scratch/ck",
            'checkpoints_path: "{checkpoints}"',
        ),
        (
            '"{assets.tokenizer}"',
            "gpt2",
            "tokenizer.tokenizer_name_or_path",
            "tokenizer_name_or_path is gpt2, which would be looked up on the hub when the ranks start",
            HUB_HINT,
        ),
        (
            '"{assets.tokenizer}"',
            '"{assets.tokenizr}"',
            "tokenizer.tokenizer_name_or_path",
            "there is no asset tokenizr",
            "{assets.tokenizer}",
        ),
        (
            '"{assets.tokenizer}"',
            "{assets.tokenizer}",
            "tokenizer.tokenizer_name_or_path.assets.tokenizer",
            "{assets.tokenizer} is a table: an unquoted brace starts one in YAML",
            '"{assets.tokenizer}"',
        ),
    ],
)
def test_what_stops_in_the_job_is_said_before(old: str, new: str, where: str, says: str, hint: str) -> None:
    found = {p.where: p for p in _said(old, new) if p.fatal}
    assert (found[where].message, found[where].hint) == (says, hint)
    span = found[where].span
    assert span is not None
    assert span.text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("checkpoint_interval: 1500", "checkpoint_interval: 1501", "only the end is saved"),
        ("max_position_embeddings: 512", "max_position_embeddings: 1024", "replaces max_position_embeddings"),
        ("num_hidden_layers: 12", "num_hidden_layers: 13", ""),
    ],
)
def test_what_goes_on_in_silence_is_a_warning(old: str, new: str, says: str) -> None:
    found = _said(old, new)
    assert not codes(found, fatal=True)
    assert [says in p.message for p in found] == ([True] if says else [])


def test_pipeline_stages_and_layers() -> None:
    text = changed(FILE, "  dp: 2\n  pp: 1\n  tp: 4", "  dp: 1\n  pp: 8\n  tp: 1")
    (problem,) = problems(nanotron, _run(texts=text))
    assert problem.message == "12 layers in 8 pipeline stages are not equal: the slowest sets the pace"
    few = {FILE: text[FILE].replace("num_hidden_layers: 12", "num_hidden_layers: 4")}
    assert "some would have none" in problems(nanotron, _run(texts=few))[0].message


def test_two_stages_of_data() -> None:
    text = (runs.DATA / FILE).read_text()
    start = text.index("  - name: stable")
    stage = text[start : text.index("tokenizer:")]
    twice = {FILE: text.replace(stage, stage * 2, 1)}
    found = [p for p in problems(nanotron, _run(texts=twice)) if p.fatal]
    assert [(p.where, p.code) for p in found] == [
        ("data_stages[1].name", "trainer-steps"),
        ("data_stages[1].start_training_step", "trainer-steps"),
    ]


def test_a_key_twice_does_not_hide_other_problems() -> None:
    text = changed(FILE, "  dp: 2", "  dp: 3\n  dp: 5")
    assert sorted(codes(problems(nanotron, _run(texts=text)))) == ["trainer-world", "yaml-duplicate"]


def test_its_own_repository_should_be_pinned() -> None:
    found = problems(nanotron, _run(code=Code(git="https://github.com/org/x"), resources=Resources(nodes=2)))
    assert ("trainer-checkout", False) in [(p.code, p.fatal) for p in found]
    assert not codes(problems(nanotron, _run(code=None, resources=Resources(nodes=2))), fatal=True)


def test_a_run_that_never_resumes() -> None:
    base = _run()
    run = attrs.evolve(base, checkpoint=attrs.evolve(base.checkpoint, resume="never"))
    assert resolved(train(nanotron, run), nanotron.FILE)["checkpoints"]["resume_checkpoint_path"] is None


def test_a_time_between_checkpoints_says_nothing_to_it() -> None:
    run = _run(checkpoint=plans.run("nanotron").checkpoint)
    (problem,) = problems(nanotron, run)
    assert (problem.code, problem.where, problem.fatal) == ("checkpoint-steps", "checkpoint.every", False)


@pytest.mark.parametrize("before", ["grad_norm: 1.2 | ", ""])
@pytest.mark.parametrize("behind", ["grad_norm: 1.2 | ", ""])
def test_its_log_is_read(before: str, behind: str) -> None:
    """Where a gradient is clipped its norm is printed: before the loss, or by the pinned commit behind."""
    (pattern,) = train(nanotron, _run()).progress
    lines = f"07/01 [INFO|DP=0|TP=0]: {LOG.format(before, behind)}\n{LOG.format('grad_norm: 9 | ', '')}"
    match = re.search(pattern.regex, lines)
    assert match
    assert match.groupdict() == {
        "step": "12",
        "tokens": "786K",
        "tokens_per_s": "53.3K",
        "grad_norm": "1.2" if before or behind else None,
        "loss": "8.91",
        "lr": "8e-05",
        "tflops_per_gpu": "5.41",
    }


def test_its_checkpoints_are_found(tmp_path: Path) -> None:
    from hpctrain_job.resume import newest

    layout = train(nanotron, _run()).checkpoints
    assert layout is not None
    for step, last in ((500, True), (1000, True), (1500, False)):
        (tmp_path / str(step)).mkdir()
        if last:
            (tmp_path / str(step) / layout.complete).touch()
    found = newest(tmp_path, layout.name, layout.complete)
    assert found is not None
    assert found.step == 1000


FAILURES: dict[str, str] = {  # from source, but for the loader's words, which were measured
    "nanotron-local-rank": "AssertionError: Local rank mismatch",
    "nanotron-world": "AssertionError: TP*CP*DP*PP=4*1*1*3=12 != WORLD_SIZE=8",
    "nanotron-fresh-start": "No previous checkpoint found in: /ck/latest.txt",
    "nanotron-data-short": "AssertionError: Dataset is too small for steps (98304000 < 99999999)",
    "nanotron-strict-key": 'dacite.exceptions.UnexpectedDataError: can not match "foo" to any data',
    "nanotron-no-gpu": "NotImplementedError: CUDA was not found: torch.cuda.is_available(): False",
}


def test_every_failure_has_its_rule_and_no_other() -> None:
    assert {rule.name for rule in RULES} == set(FAILURES)
    for name, text in FAILURES.items():
        assert [rule.name for rule in RULES if re.search(rule.pattern, text)] == [name]
    assert not [rule for rule in RULES if re.search(rule.pattern, LOG)]


def test_places_of_the_job_are_variables() -> None:
    (file,) = [f for f in train(nanotron, _run()).layer.files if f.path == nanotron.FILE]
    assert Var("HPC_CHECKPOINTS") in [w for part in file.body if isinstance(part, Join) for w in part.parts]
