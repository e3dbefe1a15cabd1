"""Every file that somebody else may have written, and the command that reads it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

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
    documents: bool = False
    """Whether it is JSON, or lines of it."""
    environ: Mapping[str, str] = field(factory=dict)


RUN_FILES: Mapping[str, tuple[str, ...]] = {
    "graph.json": ("status", "continue", "cancel", "runs"),
    "record.jsonl": ("status", "diagnose", "cancel", "runs", "continue"),
    "plan.json": ("status", "metrics", "diagnose"),
    "steps/train/exit": ("status", "diagnose"),
    "metrics.jsonl": ("status", "metrics", "runs"),
    "logs/train.log": ("logs", "diagnose"),
}
"""Files of a run's directory, each with the commands that read it."""


def _of_run() -> list[Target]:
    return [
        Target(
            name=f"{file} {command}",
            ground="run",
            file=f"R/{file}",
            argv=(command,) if command == "runs" else (command, RUN),
            codes=(0,) if command == "runs" else (0, 2, 4, 5, 7, 8),
            documents=not file.startswith("logs"),
        )
        for file, commands in RUN_FILES.items()
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
        name="manifest of an artefact",
        ground="artefact",
        file=".hpc-venv-a.1/MANIFEST",
        main=READERS + "artefact",
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
