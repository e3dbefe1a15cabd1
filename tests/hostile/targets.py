"""Every file that somebody else may have written, and the command that reads it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from hpctrain_job.attempts import UNJUDGED

PROGRAM = "hpctrain.cli.app:run"
READERS = "tests.hostile.readers:"
RUN = "small/1"


@frozen(kw_only=True)
class Target:
    """A file that is replaced by a hostile one, and who reads it."""

    name: str
    ground: str
    file: str
    argv: tuple[str, ...]
    main: str = PROGRAM
    codes: tuple[int, ...] = (0, 2, 7)
    """The exit codes that may follow: well, or whose fault it is."""
    right: tuple[int, ...] = (0,)
    """Those that follow from what is right."""
    documents: bool = False
    """Whether it is JSON, or lines of it."""
    environ: Mapping[str, str] = field(factory=dict)


RUN_FILES: Mapping[str, tuple[str, ...]] = {
    "graph.json": ("status", "continue", "cancel", "runs", "report", "checkpoints"),
    "record.jsonl": ("status", "diagnose", "cancel", "runs", "continue", "report"),
    "plan.json": ("status", "metrics", "diagnose", "report", "checkpoints", "diff"),
    "steps/train/exit": ("status", "diagnose"),
    "steps/train/jobs.jsonl": ("status", "runs", "report"),
    "steps/train/hangs.jsonl": ("status", "watch", "report"),
    "steps/train/log-sizes": ("diagnose",),
    "metrics.jsonl": ("status", "metrics", "runs", "watch", "report"),
    "logs/train.log": ("logs", "diagnose", "watch", "report"),
}
"""Files of a run's directory, each with the commands that read it."""


CHAIN_FILES: Mapping[str, tuple[str, ...]] = {
    "chain.json": ("status", "continue", "watch", "report", "runs", "begin", "end"),
    "attempts.jsonl": ("status", "runs", "continue", "watch", "report", "begin", "end"),
    "ended": ("status", "begin"),
}
"""The same of a training of several jobs; `begin` and `end` are its jobs' own questions."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "runs": ("runs",),
    "watch": ("watch", RUN, "--once"),
    "report": ("report", RUN, "-o", "out.html"),
    "diff": ("diff", RUN, RUN),
    "begin": ("begin", "--run", "R", "--step", "train", "--job", "7"),
    "end": ("end", "--run", "R", "--step", "train", "--job", "7", "--code", "79"),
}
"""What is typed after `hpctrain`; other commands have the run alone behind them."""
JUDGE = "hpctrain_job.attempts:main"
CODES: Mapping[str, tuple[int, ...]] = {"runs": (0,), "begin": (0, UNJUDGED), "end": (0, UNJUDGED)}
"""One damaged run hides no other."""


def _of_run() -> list[Target]:
    return [
        Target(
            name=f"{file} {command}",
            ground=ground,
            file=f"R/{folder}{file}",
            argv=WORDS.get(command, (command, RUN)),
            main=JUDGE if command in ("begin", "end") else PROGRAM,
            codes=CODES.get(command, (0, 2, 4, 5, 7, 8)),
            documents=file.endswith((".json", ".jsonl", "exit")),
        )
        for ground, folder, table in (("run", "", RUN_FILES), ("chain", "steps/train/", CHAIN_FILES))
        for file, commands in table.items()
        for command in commands
    ]


def _of_models() -> list[Target]:
    convert = ("convert", "model", "--to", "neox", "-o", "out")
    files = {
        "config.json": "model",
        "model.safetensors.index.json": "model",
        "tokenizer_config.json": "model",
    }
    targets = [
        Target(name=file, ground=ground, file=f"model/{file}", argv=convert, documents=file == "config.json")
        for file, ground in files.items()
    ]
    targets += [
        Target(name="safetensors", ground="model", file="model/model.safetensors", argv=convert),
        Target(
            name="torch",
            ground="torch",
            file="model/pytorch_model.bin",
            argv=(*convert[:3], "hf", *convert[4:]),
        ),
        Target(
            name="staged",
            ground="model",
            file="model/model.safetensors",
            main="hpctrain_job.staged:main",
            argv=("model=model:model",),
            codes=(0, 66),
        ),
    ]
    return targets


CHECKPOINT_FILES: Mapping[str, tuple[str, ...]] = {
    "neox": (
        "neox/latest",
        "neox/global_step0/configs/model.yml",
        "neox/global_step0/layer_02-model_00-model_states.pt",
        "neox/conversion.json",
    ),
    "nanotron": (
        "nanotron/latest.txt",
        "nanotron/0/model_config.json",
        "nanotron/0/checkpoint_metadata.json",
        "nanotron/0/model/model/final_layer_norm/pp_block/model_weight.safetensors",
    ),
    "megatron": (
        "megatron/latest_checkpointed_iteration.txt",
        "megatron/release/.metadata",
        "megatron/release/__0_0.distcp",
        "megatron/release/common.pt",
        "megatron/release/metadata.json",
    ),
    "adapter": ("adapter/adapter_config.json", "adapter/adapter_model.safetensors"),
    "dcp": ("dcp/.metadata", "dcp/__0_0.distcp"),
    "zero": (
        "zero/latest",
        "zero/global_step2/mp_rank_00_model_states.pt",
        "zero/global_step2/zero_pp_rank_0_mp_rank_00_optim_states.pt",
    ),
    "universal": (
        "universal/latest_universal",
        "universal/global_step2_universal/zero/optimizer_state.pt",
        "universal/global_step2_universal/zero/first.weight/fp32.pt",
        "universal/global_step2_universal/mp_rank_00_model_states.pt",
    ),
}
"""Files of other formats than Hugging Face's, by the folder that is converted."""
TO_RANKS: Mapping[str, tuple[str, ...]] = {
    "zero": ("--to", "deepspeed-universal"),
    "universal": ("--to", "deepspeed-zero", "--ranks", "3"),
}
"""Where no model of Hugging Face's is made, but a checkpoint to go on from."""


def _of_formats() -> list[Target]:
    return [
        Target(
            name=file,
            ground=folder,
            file=file,
            argv=("convert", folder, *TO_RANKS.get(folder, ("--to", "hf")), "-o", "out"),
            documents=file.endswith(".json"),
        )
        for folder, files in CHECKPOINT_FILES.items()
        for file in files
    ]


TRAINER_FILES: Mapping[str, tuple[str, ...]] = {
    "neox": ("neox.yml", "neox-run.yml"),
    "nanotron": ("nanotron.yml",),
    "automodel": ("automodel.yml",),
}
"""A trainer's own files of settings, of which the first is replaced."""


def _of_jobs() -> list[Target]:
    """What jobs and machines wrote about themselves."""
    return [
        Target(
            name="pulse",
            ground="hangs",
            file="1.7.json",
            main=READERS + "pulses",
            argv=("nodes",),
            documents=True,
        ),
        Target(
            name="page of a node",
            ground="hangs",
            file="nodes/1.json",
            main=READERS + "pulses",
            argv=("nodes",),
            documents=True,
        ),
        Target(
            name="verdicts for a job",
            ground="run",
            file="R/steps/train/hangs.jsonl",
            main=READERS + "blamed",
            argv=("R/steps/train",),
        ),
        Target(
            name="beat of a guard",
            ground="guards",
            file="board/beat.n2",
            main=READERS + "board",
            argv=("board",),
            documents=True,
        ),
        Target(
            name="measures of a node",
            ground="guards",
            file="vet/1.json",
            main=READERS + "vetted",
            argv=(".",),
            documents=True,
        ),
        Target(
            name="nodes that were unfit",
            ground="guards",
            file="vetted.jsonl",
            main=READERS + "vetted",
            argv=(".",),
            documents=True,
        ),
        Target(
            name="capture",
            ground="capture",
            file="capture.json",
            argv=("clusters", "olivia", "--against", "capture.json"),
            right=(7,),
            documents=True,
        ),
        Target(
            name="answers of a node",
            ground="capture",
            file="answers/1.json",
            main=READERS + "answers",
            argv=("answers",),
            documents=True,
        ),
        *(
            Target(
                name=f"log of a stranger, {trainer}",
                ground="run",
                file="R/logs/train.log",
                argv=("diagnose", "R/logs/train.log", "--trainer", trainer),
            )
            for trainer in ("trl", "neox", "nanotron", "automodel")
        ),
        *(
            Target(
                name=f"settings for {trainer}",
                ground="files",
                file=f"{trainer}.yml",
                argv=("check", "--trainer", trainer, "--gpus", "8", *files),
            )
            for trainer, files in TRAINER_FILES.items()
        ),
    ]


TARGETS = (
    Target(name="run file", ground="files", file="run.toml", argv=("plan", "run.toml")),
    Target(
        name="settings",
        ground="files",
        file="settings.toml",
        argv=("check", "run.toml"),
        environ={"HPCTRAIN_SETTINGS": "settings.toml"},
    ),
    Target(
        name="site file",
        ground="files",
        file="site.toml",
        argv=("check", "run.toml"),
        environ={"HPCTRAIN_SITE": "site.toml"},
    ),
    Target(name="lock", ground="files", file="run.lock.toml", argv=("plan", "run.toml")),
    Target(name="requirements", ground="files", file="requirements.txt", argv=("plan", "packages.toml")),
    Target(
        name="description for enroot",
        ground="files",
        file="mine.edf.toml",
        argv=("check", "edf.toml"),
        codes=(0, 2, 7),
    ),
    Target(
        name="facts", ground="facts", file="olivia/cluster.toml", main=READERS + "facts", argv=("olivia",)
    ),
    *_of_run(),
    Target(
        name="list of runs",
        ground="run",
        file=".local/state/hpctrain/runs.jsonl",
        argv=("runs",),
        codes=(0,),
        documents=True,
    ),
    Target(
        name="last answer",
        ground="slurm",
        file=".local/state/hpctrain/polls/local.json",
        argv=("status", RUN),
        codes=(0, 5, 8),
        documents=True,
    ),
    Target(name="squeue", ground="slurm", file="answer.squeue", argv=("status", RUN), codes=(0, 5, 8)),
    Target(name="sacct", ground="slurm", file="answer.sacct", argv=("status", RUN), codes=(0, 5, 8)),
    Target(
        name="qstat", ground="pbs", file="answer.qstat", argv=("status", RUN), codes=(0, 5, 8), documents=True
    ),
    *_of_models(),
    *_of_formats(),
    *_of_jobs(),
    Target(name="token index", ground="tokens", file="x.idx", argv=("data", "show", "x")),
    Target(name="token index, checked", ground="tokens", file="x.idx", argv=("data", "check", "x")),
    Target(
        name="tokenizer",
        ground="tokens",
        file="tokenizer.json",
        argv=("data", "count", "rows.jsonl", "--tokenizer", "."),
        codes=(0, 2, 4, 7),
    ),
    Target(
        name="rows",
        ground="tokens",
        file="rows.jsonl",
        argv=("data", "count", "rows.jsonl", "--tokenizer", "."),
        codes=(0, 2, 7),
    ),
    Target(
        name="manifest of an artifact",
        ground="artifact",
        file=".hpc-venv-a.1/MANIFEST",
        main=READERS + "shared_artifact",
        argv=("venv-a",),
        codes=(0, 7),
    ),
    Target(
        name="manifest of a checkpoint",
        ground="checkpoint",
        file="step-10/MANIFEST",
        main=READERS + "checkpoint",
        argv=(".",),
        codes=(0, 7),
    ),
)
FIRST = {(target.ground, target.file): target for target in reversed(TARGETS)}
"""Of the readers of a file, the one that is tried most."""
