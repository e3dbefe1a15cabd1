"""What a hostile file stands in: a finished run, a small model, token files, made by the product itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import hpc_olivia
from hpctrain import Session
from hpctrain.doctor import examination
from hpctrain.runfile.facts import load_facts
from hpctrain_job.attempts import Step
from hpctrain_job.guards.board import Beat, Board, Phase
from hpctrain_job.hangs import pages, verdicts
from hpctrain_job.hangs.evidence import Doing, Kind, Operation, Rank, Verdict
from hpctrain_job.resume import write_manifest
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.models import LLAMA, make
from tests.checkpoints.test_evil import one_file
from tests.checkpoints.test_peft import adapter
from tests.e2e.product import small
from tests.patience import PATIENCE

JOB, TAG = "4711", "a" * 32
MOMENT, SECONDS = b"2026-01-02T03:04:05", b"1767323045.0"
FIXTURES = Path(__file__).parents[1] / "checkpoints/fixtures"
EXAMPLES = {
    "neox": "hpc_isambard/hpc_isambard/examples/neox-model.yml",
    "neox-run": "hpc_isambard/hpc_isambard/examples/neox-run.yml",
    "nanotron": "hpc_alps/hpc_alps/examples/nanotron-wikitext.yaml",
    "automodel": "hpc_leonardo/hpc_leonardo/examples/nemotron.yaml",
}
"""Files of settings of trainers' own."""
PARTITION = """PartitionName=accel
   AllowGroups=ALL AllowAccounts=abc AllowQos=ALL MaxNodes=UNLIMITED MaxTime=2-00:00:00 Default=YES
   DefMemPerCPU=2000 MaxMemPerNode=UNLIMITED Nodes=gpu-1-[1-76] TotalNodes=76 State=UP TRES=cpu=22000
"""
ANSWERS = {
    "scheduler partitions": PARTITION,
    "scheduler version of Slurm": "slurm 24.11.5\n",
    "scheduler nodes": "accel|76|288|808000|gpu:4(S:0-3)\n",
    "scheduler limits of the QoS": "normal|2-00:00:00|10|node=4\n",
    "scheduler your accounts": "abc\n",
    "network stack": '{"loaded": {"libnccl.so.2": "/x/libnccl.so.2"}}\n',
    "role env": "/cluster/projects 0 0 755 lustre 1000 500\n",
    "the hub": '{"status": 200}\n',
}
"""What programs of a login node print; whatever else is asked is answered with 1."""
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
    for name, example in EXAMPLES.items():
        shutil.copy(FIXTURES.parents[2] / example, folder / f"{name}.yml")
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
    finished = Session(folder / "run.toml", environ=environ).submit()
    finished.wait(timeout=60 * PATIENCE)
    (folder / "R").symlink_to(finished.directory.path.relative_to(folder))
    verdict = Verdict(Kind.IDLE, (3,), ("n1",), (1,), ("no processor time",))
    verdicts.write(folder / "R/steps/train", "7", verdict)
    _settle(folder)


def _settle(folder: Path) -> None:
    """Put one tag, and one moment, in the place of those of this making: a file is attacked in the same way
    wherever it was made."""
    rows = [json.loads(line) for line in (folder / "R/record.jsonl").read_text().splitlines()]
    tag = next(row["tag"] for row in rows if "tag" in row)
    job = next(row["job"] for row in rows if "job" in row)
    of_making = {tag.encode(): TAG.encode(), job.encode(): TAG[: len(job)].encode()}
    for path in [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".zip"]:
        content = path.read_bytes()
        for old, new in of_making.items():
            content = content.replace(old, new)
        content = re.sub(rb"20\d\d-\d\d-\d\dT[\d:]{8}(?=[.Z])", MOMENT, content)
        content = re.sub(rb"(?<=:\d\d\.)\d{3}(?=Z)", b"000", content)
        path.write_bytes(re.sub(rb'(?<="at": )1\d{9}\.\d+', SECONDS, content))
        if tag in path.name or job in path.name:
            path.rename(path.with_name(path.name.replace(tag, TAG).replace(job, TAG[: len(job)])))


def chain(folder: Path) -> None:
    """A training of several jobs of which one ended well and one was killed; nobody has jobs in a queue."""
    _with_scheduler(folder, "slurm", JOB, {"squeue": "", "sacct": ""})
    graph = json.loads((folder / "R/graph.json").read_text())
    graph["nodes"][0]["links"] = {"attempts": 2, "most": 2}
    (folder / "R/graph.json").write_text(json.dumps(graph))
    step = Step(folder / "R", "train")
    terms = {"v": 1, "total": 7200, "time": 3600, "links": 2, "avoid": 8}
    checkpoints = {"folder": "small/1", "name": r"step-(?P<step>\\d+)", "complete": "weights"}
    (step.folder / "chain.json").write_text(json.dumps({**terms, "checkpoints": checkpoints}))
    for job, cause in (("5", "saved"), ("6", "node fault")):
        step.write("began", job=job, step=0, nodes=["n1", "n2"])
        step.write("ended", job=job, cause=cause, step=10, until=1.0, lost_nodes=["n2"])
    step.write("began", job=JOB, step=10, nodes=["n1"])
    (step.folder / "ended").write_text("node fault\n")
    attempts = step.folder / "attempts.jsonl"
    attempts.write_bytes(re.sub(rb'(?<="at": )1\d{9}\.\d+', SECONDS, attempts.read_bytes()))


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
    checkpoint_folder = make(folder / "model", LLAMA)
    (checkpoint_folder / "tokenizer_config.json").write_text('{"chat_template": "x"}\n')
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


def artifact(folder: Path) -> None:
    """A published artifact."""
    content = folder / ".hpc-venv-a.1/content"
    content.mkdir(parents=True)
    (content / "python").write_text("x")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    (folder / ".hpc-venv-a.1/MANIFEST").write_text(
        f"# hpctrain manifest 1 venv-a\n1 {digest}  content/python\n"
    )
    (folder / "venv-a").symlink_to(".hpc-venv-a.1/content")


def _converted(name: str) -> Callable[[Path], None]:
    def ground(folder: Path) -> None:
        """A small model in the format of a trainer."""
        convert(make(folder / "model", LLAMA), name, folder / name, ConvertOptions(verify="none"))
        for record in folder.glob("*/conversion.json"):
            record.write_text(re.sub(r'(?<="seconds": )[\d.]+', "0.1", record.read_text()))

    return ground


def _saved(name: str) -> Callable[[Path], None]:
    def ground(folder: Path) -> None:
        """What DeepSpeed or torch wrote itself."""
        with zipfile.ZipFile(FIXTURES / "hostile-seeds.zip") as archive:
            archive.extractall(
                folder, [entry for entry in archive.namelist() if entry.startswith(f"{name}/")]
            )

    return ground


def lora(folder: Path) -> None:
    """An adapter and the model that it was trained on."""
    adapter(folder)


def hangs(folder: Path) -> None:
    """The pulses of two ranks on one node, and its page for the others."""
    pulse = {
        "v": 1, "rank": 0, "pid": 2, "born": "1", "at": 2.0, "over": False, "numbers": {"0": 3},
        "members": {"0": "0:2:1"}, "stack": ["train.py:main"], "pending": ["0", 3, "all_reduce", "10"],
        "order": "a > b", "orders": ["a > b"],
    }  # fmt: skip
    for rank in (0, 1):
        (folder / f"{rank}.7.json").write_text(json.dumps({**pulse, "rank": rank}))
    operation = Operation("0", 3, "all_reduce", "10")
    order = frozenset({"a > b"})
    rank_value = Rank(1, "n1", 1, {"0": 3}, operation, "a > b", order, ("train.py:main",), Doing.IDLE, 2.0)
    for node in (0, 1):
        pages.write(folder / "nodes", node, 40.0, [rank_value], {"0": "0:2:1"})


def guards(folder: Path) -> None:
    """The board on which guards meet, and what three nodes measured of themselves."""
    (folder / "board").mkdir()
    Board(folder / "board").write_beat("n2", Beat(count=3, attempt=1, phase=Phase.RUNNING))
    (folder / "vet").mkdir()
    report = {
        "host": "n1", "began": 1.0, "gpus": [{"memory": 80_000, "errors": 0}], "gpu_fault": "",
        "counted": True, "memory": 1 << 38, "product": "a", "seconds": 0.2, "disk_fault": "",
    }  # fmt: skip
    for rank in range(3):
        (folder / f"vet/{rank}.json").write_text(json.dumps({**report, "rank": rank}))
    unfit = {"v": 1, "at": 1.0, "job": "7", "node": "n2", "kind": "slow", "evidence": "x"}
    (folder / "vetted.jsonl").write_text(json.dumps(unfit) + "\n")


def capture(folder: Path) -> None:
    """What a login node answered, and what compute nodes did."""
    site = examination.site_of(load_facts(Path(str(hpc_olivia.__file__)).parent).cluster, {}, "ACCOUNT")
    answers = {
        question.name: {"out": ANSWERS.get(question.name, "1\n"), "err": "", "code": 0, "fault": ""}
        for question in examination.questions(site)
        if question.argv
    }
    document = {"schema": "hpctrain/capture/1", "cluster": "olivia", "at": "2026-01-01", "answers": answers}
    (folder / "capture.json").write_text(json.dumps(document))
    (folder / "answers").mkdir()
    for rank in ("0", "1"):
        report = {"host": "n1", "rank": rank, "began": 1.0, "answers": answers}
        (folder / f"answers/{rank}.json").write_text(json.dumps(report))


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
    "artifact": artifact,
    "checkpoint": checkpoint,
    "chain": chain,
    "adapter": lora,
    **{name: _converted(name) for name in ("neox", "nanotron", "megatron")},
    **{name: _saved(name) for name in ("zero", "universal", "dcp")},
    "hangs": hangs,
    "guards": guards,
    "capture": capture,
}
