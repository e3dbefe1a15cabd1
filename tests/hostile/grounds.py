"""What a hostile file stands in: a finished run, a small model, token files, made by the product itself."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import hpc_olivia
from hpctrain import Session
from hpctrain_job.resume import write_manifest
from tests.checkpoints.models import LLAMA, make
from tests.checkpoints.test_evil import one_file
from tests.e2e.product import small
from tests.patience import PATIENCE

JOB, TAG = "4711", "a" * 32
SQUEUE = "\x1f".join(
    (
        JOB,
        "RUNNING",
        "0",
        "None",
        "1:00",
        "5:00",
        "2026-01-02T03:04:05",
        "nid[001-004]",
        "p",
        "q",
        "n",
        f"hpctrain:{TAG}",
    )
)
SACCT = f"{JOB}|COMPLETED|0:0|None|00:01:00|00:05:00|2026-01-02T03:04:05|nid[001-004]|p|q|n|hpctrain:{TAG}"
QSTAT = json.dumps(
    {
        "Jobs": {
            f"{JOB}.pbs": {
                "Job_Name": f"n.{TAG}",
                "Job_Owner": "ada@login",
                "job_state": "R",
                "queue": "workq",
                "exec_host": "a/0*4+b/0*4",
                "Resource_List": {"walltime": "00:05:00", "nodect": 2, "ngpus": 8},
                "resources_used": {"walltime": "00:01:00"},
                "Variable_List": {"PBS_O_QUEUE": "workq"},
                "stime": "Mon Nov 23 19:03:00 2026",
            }
        }
    }
)


def files(folder: Path) -> None:
    """Files that a user writes."""
    (folder / "run.toml").write_text(small("true"))
    (folder / "settings.toml").write_text('account = "abc"\n')
    (folder / "site.toml").write_text("[policy]\npoll_seconds = 20\n")
    (folder / "run.lock.toml").write_text(
        small("true") + '\n[pins."local"]\nasked = "x"\n"package:a" = "1"\n'
    )
    (folder / "requirements.txt").write_text("numpy==2.0.0\n# one\nattrs>=23\n")
    packages = small("true").replace('use = ""', 'use = "venv"\nrequirements = "requirements.txt"')
    (folder / "packages.toml").write_text(packages)
    edf = small("true").replace('use = ""', 'use = "edf"\n[environment.edf]\nedf = "mine.edf.toml"')
    (folder / "edf.toml").write_text(
        edf.replace('"local"', '"alps"').replace("[resources]", '[resources]\naccount = "a"')
    )
    (folder / "mine.edf.toml").write_text('image = "/a.sqsh"\nmounts = ["/a:/b"]\n[env]\nA = "${HOME}"\n')


def facts(folder: Path) -> None:
    """The facts of a cluster."""
    shutil.copytree(Path(str(hpc_olivia.__file__)).parent, folder / "olivia")


def run(folder: Path) -> None:
    """A run that is over, and its directory under the name R."""
    (folder / "run.toml").write_text(
        small("""echo step 1; echo '{"step": 1, "loss": 2.5}' >> "$HPC_RUN/metrics.jsonl" """)
    )
    environ = {"HOME": str(folder), "USER": "me", "PATH": os.environ["PATH"]}
    made = Session(folder / "run.toml", environ=environ).submit()
    made.wait(timeout=60 * PATIENCE)
    (folder / "R").symlink_to(made.directory.path.relative_to(folder))


def _with_scheduler(folder: Path, scheduler: str, job: str, answers: Mapping[str, str]) -> None:
    """The same run, of which only this scheduler knows how it stands; its programs say what a file holds."""
    run(folder)
    graph = json.loads((folder / "R/graph.json").read_text())
    (folder / "R/graph.json").write_text(json.dumps({**graph, "scheduler": scheduler}))
    (folder / "R/steps/train/exit").unlink()
    rows = [json.loads(line) for line in (folder / "R/record.jsonl").read_text().splitlines()]
    for row in rows:
        row.update({"tag": TAG} if "tag" in row else {}, **({"job": job} if "job" in row else {}))
    (folder / "R/record.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    state = folder / ".local/state/hpctrain/polls/local.json"
    state.parent.mkdir(exist_ok=True)
    last = {"id": job, "state": "queued", "tag": TAG, "name": "n", "nodes": [], "elapsed_s": 1, "reason": "x"}
    state.write_text(json.dumps({"at": 0, "ids": [job], "tags": [TAG], "jobs": [last]}))
    for program, answer in answers.items():
        (folder / f"answer.{program}").write_text(answer + "\n")
        tool = folder / "bin" / program
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/sh\ncat {folder}/answer.{program}\n")
        tool.chmod(0o755)


def slurm(folder: Path) -> None:
    """A run whose job Slurm has."""
    _with_scheduler(folder, "slurm", JOB, {"squeue": SQUEUE, "sacct": SACCT})


def pbs(folder: Path) -> None:
    """A run whose job PBS has."""
    _with_scheduler(folder, "pbs", f"{JOB}.pbs", {"qstat": QSTAT, "qselect": f"{JOB}.pbs"})


def model(folder: Path) -> None:
    """A model of Hugging Face."""
    made = make(folder / "model", LLAMA)
    (made / "tokenizer_config.json").write_text('{"chat_template": "x"}\n')
    (folder / "MANIFEST").write_text("# hpctrain manifest 1 model\n")


def torch(folder: Path) -> None:
    """A model that torch.save wrote."""
    one_file(folder)


def tokens(folder: Path) -> None:
    """Token files, and what they are made from."""
    sizes, offsets, ends = (3, 2), (0, 6), (0, 1, 2)
    head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, 2, 3)
    (folder / "x.idx").write_bytes(head + struct.pack("<2i2q3q", *sizes, *offsets, *ends))
    (folder / "x.bin").write_bytes(struct.pack("<5H", 1, 2, 3, 4, 5))
    (folder / "rows.jsonl").write_text('{"text": "a b"}\n{"text": "b"}\n')
    vocabulary = {"<|endoftext|>": 0, "a": 1, "b": 2, " ": 3}
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "truncation": None,
        "padding": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def artefact(folder: Path) -> None:
    """A published artefact."""
    content = folder / ".hpc-venv-a.1/content"
    content.mkdir(parents=True)
    (content / "python").write_text("x")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    (folder / ".hpc-venv-a.1/MANIFEST").write_text(
        f"# hpctrain manifest 1 venv-a\n1 {digest}  content/python\n"
    )
    (folder / "venv-a").symlink_to(".hpc-venv-a.1/content")


def checkpoint(folder: Path) -> None:
    """A checkpoint that a watcher confirmed."""
    (folder / "step-10").mkdir()
    (folder / "step-10/weights").write_text("x")
    write_manifest(folder / "step-10")


GROUNDS: Mapping[str, Callable[[Path], None]] = {
    "files": files,
    "facts": facts,
    "run": run,
    "slurm": slurm,
    "pbs": pbs,
    "model": model,
    "torch": torch,
    "tokens": tokens,
    "artefact": artefact,
    "checkpoint": checkpoint,
}
