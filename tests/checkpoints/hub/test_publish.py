"""`hpctrain publish` with the hub's real client against a hub on loopback that misbehaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.hub import work
from hpctrain_plugins.checkpoints.hub.experiment import HubCheckpoint
from hpctrain_plugins.checkpoints.hub.ledger import Ledger
from hpctrain_plugins.checkpoints.hub.remote import Remote
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import random_tensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, shapes
from tests.checkpoints.test_command import a_run, saved
from tests.patience import PATIENCE, wait_for
from tests.twin.services.http import Server
from tests.twin.services.hub import serve

STEPS = tuple(range(100, 1300, 100))
TOKEN = "hf_twin"
REPO, RAW = "org/exp", "org/neox-ckpt-exp"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "hub").mkdir()
    with serve(tmp_path / "hub") as server:
        yield server


def experiment(folder: Path, steps: tuple[int, ...] = STEPS) -> Path:
    """A NeoX experiment: a folder with one step folder for each of `steps`, all different."""
    folder.mkdir()
    for step in steps:
        source = folder.parent / f"source-{step}"
        source.mkdir()
        write_safetensors(source / "model.safetensors", random_tensors(step, "BF16", shapes(GPT_NEOX)))
        (source / "config.json").write_text(json.dumps(GPT_NEOX))
        made = folder.parent / f"made-{step}"
        convert(source, "neox", made, ConvertOptions(iteration=step, fsync=False))
        (made / f"global_step{step}").rename(folder / f"global_step{step}")
    return folder


def started(hub: Server, home: Path, *argv: object, token: str = TOKEN) -> subprocess.Popen[str]:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(home),
        "HF_HOME": str(home / "hf-home"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        **({"HF_TOKEN": token} if token else {}),
    }
    words = [sys.executable, "-m", "hpctrain", "publish", *map(str, argv)]
    return subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home
    )


def published(hub: Server, home: Path, *argv: object, token: str = TOKEN) -> tuple[int, str, str]:
    process = started(hub, home, *argv, token=token)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def ledger(place: Path) -> list[dict[str, Any]]:
    lines = (place / "org--exp.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def commits(hub: Server) -> Counter[str]:
    """How often each revision was written, as the hub logged it."""
    found = Counter[str]()
    for line in hub.asked():
        words = re.match(r"POST /api/models/(\S+)/commit/(\S+) \S+ -$", line)
        if words:
            found[f"{words[1]}@{words[2]}"] += 1
    return found


def uploads(hub: Server) -> Counter[str]:
    return Counter(line.split()[1] for line in hub.asked() if re.match(r"PUT \S+ \S+ -$", line))


def branches(hub: Server, home: Path, repository: str) -> dict[str, set[str]]:
    """The listing of the hub: revision -> names of files."""
    code = """
import json, sys
from huggingface_hub import HfApi
api = HfApi()
if not api.repo_exists(sys.argv[1]):
    print("{}"); raise SystemExit
names = [b.name for b in api.list_repo_refs(sys.argv[1]).branches if b.name != "main"]
print(json.dumps({n: api.list_repo_files(sys.argv[1], revision=n) for n in names}))
"""
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(home / "hf-home")}
    done = subprocess.run(
        [sys.executable, "-c", code, repository], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {name: set(files) for name, files in json.loads(done.stdout.splitlines()[-1]).items()}


def test_twelve_checkpoints_in_spite_of_everything(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp")
    hub.will("~commit 429 1", "~preupload 429 1", "~^PUT drop 1000")
    code, out, err = published(hub, tmp_path, source, REPO)
    assert code == 0, err
    rows = ledger(tmp_path / "exp-hf")
    assert Counter(r["event"] for r in rows) == {"uploaded": 24}
    assert {r["step"] for r in rows if r["repository"] == REPO} == set(STEPS)
    assert (hub.folder / "hub.script").read_text() == ""
    assert out.count("uploaded") == 24
    assert "429" in err
    assert TOKEN not in out + err + (tmp_path / "exp-hf/org--exp.jsonl").read_text()
    models = branches(hub, tmp_path, REPO)
    assert set(models) == {f"global_step{step}" for step in STEPS}
    assert all({"config.json", "model.safetensors"} <= files for files in models.values())
    assert not any("conversion.json" in files for files in models.values())
    again, out, err = published(hub, tmp_path, source, REPO)
    assert (again, out.count("uploaded")) == (0, 24), err
    assert set(commits(hub).values()) == {1}
    assert set(uploads(hub).values()) == {1}


def test_a_kill_anywhere_uploads_nothing_twice(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", STEPS)
    book = tmp_path / "exp-hf/org--exp.jsonl"
    for lines in (1, 4, 9):
        process = started(hub, tmp_path, source, REPO)
        deadline = time.monotonic() + 120 * PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if book.exists() and len(book.read_text().splitlines()) >= lines:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    code, _, err = published(hub, tmp_path, source, REPO)
    assert code == 0, err
    done = {(r["step"], r["repository"]) for r in ledger(tmp_path / "exp-hf") if r["event"] != "failed"}
    assert len(done) == 24
    assert set(commits(hub).values()) == {1}
    assert len(commits(hub)) == 24


def test_the_two_switches_differ_in_the_listing(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100,))
    assert published(hub, tmp_path, source, REPO, "--upload-neox-only")[0] == 0
    assert branches(hub, tmp_path, REPO) == {}
    (raw,) = branches(hub, tmp_path, RAW).values()
    assert any(name.endswith("model_states.pt") for name in raw)
    assert not (tmp_path / "exp-hf/global_step100").exists()
    assert published(hub, tmp_path, source, "org/other", "--skip-neox-upload")[0] == 0
    assert branches(hub, tmp_path, "org/neox-ckpt-other") == {}
    (model,) = branches(hub, tmp_path, "org/other").values()
    assert not any(name.endswith(".pt") for name in model)


def test_what_exists_is_compared_and_never_overwritten(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100, 200))
    only = ("--skip-neox-upload",)
    assert published(hub, tmp_path, source, REPO, *only)[0] == 0
    (tmp_path / "exp-hf/org--exp.jsonl").unlink()
    code, out, err = published(hub, tmp_path, source, REPO, *only)
    assert (code, out.count("exists")) == (0, 2), err
    (tmp_path / "exp-hf/org--exp.jsonl").unlink()
    config = tmp_path / "exp-hf/global_step100/config.json"
    config.write_text(config.read_text().replace("64", "65"))
    before = commits(hub)
    code, out, err = published(hub, tmp_path, source, REPO, *only)
    assert code == 7
    assert "error[hub-differs]: config.json of org/exp@global_step100" in err
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["failed", "exists"]
    assert commits(hub) == before


def test_a_damaged_checkpoint_does_not_stop_the_others(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100, 200))
    file = next((source / "global_step100").glob("layer_03*"))
    file.write_bytes(file.read_bytes()[:-200])
    code, out, err = published(hub, tmp_path, source, REPO, "--skip-neox-upload", "--json")
    said = json.loads(out)
    assert code == 7
    assert [row["model"] for row in said["rows"]] == ["failed", "uploaded"]
    assert file.name in said["problems"][0]["message"]
    assert err.count("error[") <= 1


def test_no_token_and_no_answer_are_said(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100,))
    code, _, err = published(hub, tmp_path, source, REPO, "--skip-neox-upload", token="")
    assert (code, "error[hub-refused]" in err, "hf auth login" in err) == (2, True, True)
    hub.will(*["~repos/create 503"] * 50)
    code, _, err = published(hub, tmp_path, source, REPO, "--skip-neox-upload", "--max-retries", 1)
    assert (code, "error[hub-busy]" in err, "no answer after 2 tries" in err) == (6, True, True)


def test_a_run_is_all_its_complete_checkpoints(hub: Server, tmp_path: Path) -> None:
    checkpoints = a_run(tmp_path)
    for step in (5, 10):
        saved(checkpoints, step)
    saved(checkpoints, 15, whole=False)
    code, out, err = published(hub, tmp_path, "runs/r/1-aaaaaaaa", REPO, "--skip-neox-upload")
    assert (code, out.count("uploaded")) == (0, 2), err
    models = branches(hub, tmp_path, REPO)
    assert set(models) == {"global_step5", "global_step10"}
    assert all("model.safetensors" in files for files in models.values())


LM_EVAL = """#!/bin/sh
printf '%s\\n' "$*" >>"$HOME/asked"
[ ! -e "$HOME/broken" ]
"""


def test_each_model_is_evaluated_once_after_its_upload(
    hub: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = experiment(tmp_path / "exp", (100, 200))
    words = (source, REPO, "--skip-neox-upload", "--eval", "--eval-tasks", "arc_easy,piqa")
    code, _, err = published(hub, tmp_path, *words)
    assert (code, "error[no-program]: lm_eval is not on PATH" in err) == (2, True), err
    assert hub.asked() == []
    program = tmp_path / "bin/lm_eval"
    program.parent.mkdir()
    program.write_text(LM_EVAL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "broken").touch()
    code, out, err = published(hub, tmp_path, *words)
    assert (code != 0, "lm_eval ended with 1 on global_step100" in err, out.count("uploaded")) == (
        True,
        True,
        2,
    )
    (tmp_path / "broken").unlink()
    (tmp_path / "asked").unlink()
    for _ in range(2):
        assert published(hub, tmp_path, *words)[0] == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    folders = [tmp_path / f"exp-hf/global_step{step}" for step in (100, 200)]
    wanted = zip(folders, asked, strict=True)
    assert all(f"pretrained={folder} --tasks arc_easy,piqa" in line for folder, line in wanted)
    assert set(commits(hub).values()) == {1}


def test_the_delay_comes_once_and_before_the_first_upload(tmp_path: Path) -> None:
    done: list[object] = []

    class Hub:
        def __init__(self, name: str) -> None:
            self.name = name

        def make(self, *, private: bool) -> None:
            done.append(("make", self.name, private))

        def holds(self, revision: str, here: Path) -> bool:
            return False

        def upload(self, revision: str, here: Path) -> str:
            done.append(revision)
            return "commit"

    found = [HubCheckpoint(step, tmp_path / f"global_step{step}") for step in (100, 200)]
    task = work.Task(checkpoints=found, place=tmp_path, model=None, raw=RAW, delay=90.0)
    crew = work.Crew(
        remote=lambda name: cast("Remote", Hub(name)),
        convert=lambda path, out: None,
        evaluate=None,
        say=lambda line: None,
        sleep=done.append,
    )
    rows = work.publish(task, Ledger(tmp_path / "book.jsonl"), crew)
    assert done == [90.0, ("make", RAW, False), "global_step100", "global_step200"]
    assert [row.raw for row in rows] == ["uploaded", "uploaded"]
    assert 0 <= work.delay("random") <= 43_200
    assert work.delay("2.5") == 2.5


def test_a_dry_run_asks_nobody(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100, 200))
    code, out, err = published(hub, tmp_path, source, REPO, "--dry-run")
    assert (code, out.count("to do"), out.count("to convert")) == (0, 2, 2), err
    assert f"would be uploaded to {RAW}@global_step100 to 200, " in out
    assert hub.asked() == []
    assert not (tmp_path / "exp-hf").exists()


def test_a_dry_run_shows_each_file_that_leaves(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100,))
    raw = source / "global_step100"
    (raw / "notes").mkdir()
    (raw / "notes/[1].txt").write_text("a name that is a pattern")
    (raw / "README.md").write_text("mine")
    (raw / ".secret").write_text("hidden")
    (raw / "notes/.hidden").write_text("hidden")

    def dry_run(repository: str) -> dict[str, set[str]]:
        code, out, err = published(hub, tmp_path, source, repository, "--dry-run", "--json")
        assert code == 0, err
        (row,) = json.loads(out)["rows"]
        return {name: set(files) for name, files in row["files"].items()}

    would = dry_run(REPO)
    assert set(would) == {RAW}
    assert {"notes/[1].txt", "README.md"} <= would[RAW]
    assert published(hub, tmp_path, source, REPO)[0] == 0
    assert branches(hub, tmp_path, RAW)["global_step100"] - {".gitattributes"} == would[RAW]
    # The conversion is made by now: for another name its files are known before anything leaves.
    other = dry_run("org/other")["org/other"]
    assert "model.safetensors" in other
    assert published(hub, tmp_path, source, "org/other")[0] == 0
    assert branches(hub, tmp_path, "org/other")["global_step100"] - {".gitattributes"} == other


LINKS = {
    "a file": ("notes.txt", "{private}/key"),
    "a file, by a way back": ("notes.txt", "../../private/key"),
    "a folder": ("notes", "{private}"),
    "a link to a link": ("notes.txt", "{private}/link"),
    "a link in the folder to one outside": ("notes.txt", "hop"),
    "a process": ("notes.txt", "/proc/self/environ"),
    "a device": ("notes.txt", "/dev/zero"),
    "a README": ("README.md", "{private}/key"),
    "a folder deep inside": ("a/b/notes", "{private}"),
    "a file deep inside": ("a/b/notes.txt", "{private}/key"),
    "the folder above": ("a/b/up", "../../.."),
}


@pytest.mark.parametrize("attack", LINKS)
def test_a_dry_run_refuses_what_the_upload_would(hub: Server, tmp_path: Path, attack: str) -> None:
    source = experiment(tmp_path / "exp", (100, 200))
    private, step = tmp_path / "private", source / "global_step200"
    private.mkdir()
    (private / "key").write_text("SECRET-OF-MINE")
    (private / "link").symlink_to("key")
    name, target = LINKS[attack]
    (step / name).parent.mkdir(parents=True, exist_ok=True)
    (step / name).symlink_to(target.format(private=private))
    if target == "hop":
        (step / "hop").symlink_to(private / "key")
    for words in (("--dry-run",), ()):
        code, out, err = published(hub, tmp_path, source, REPO, "--upload-neox-only", *words)
        assert code == 7, err
        assert "is a link that leads out of its folder" in err
        assert out.count("refused") == 1 or not words
        assert "SECRET" not in out + err
    assert not [name for name in branches(hub, tmp_path, RAW) if name == "global_step200"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("exp", "noslash"), "is not the name of a model"),
        (("exp", REPO, "--upload-neox-only", "--skip-neox-upload"), "nothing to upload"),
        (("exp", REPO, "--upload-delay", "soon"), "'soon' is not a number of seconds"),
        (("gone", REPO), "no folder and no run 'gone'"),
        ((".", REPO), "holds no complete checkpoint"),
    ],
)
def test_mistakes(hub: Server, tmp_path: Path, argv: tuple[str, ...], says: str) -> None:
    experiment(tmp_path / "exp", (100,))
    code, _, err = published(hub, tmp_path, *argv)
    assert (code, says in err) == (2, True), err
    assert hub.asked() == []


def test_jobs_convert_and_the_upload_follows_them(hub: Server, tmp_path: Path) -> None:
    source = experiment(tmp_path / "exp", (100, 200, 300))
    file = next((source / "global_step200").glob("layer_03*"))
    file.write_bytes(file.read_bytes()[:-200])
    words = (source, REPO, "--skip-neox-upload", "--job", "--on", "local")
    code, _, err = published(hub, tmp_path, *words, "--eval")
    assert (code, "--eval needs a GPU" in err) == (2, True), err
    code, out, err = published(hub, tmp_path, *words, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert list(said["jobs"]) == ["convert-100", "convert-200", "convert-300", "publish"]
    exit_file = Path(said["path"]) / "steps/publish/exit"
    wait_for("the upload", exit_file.exists, seconds=120)
    rows = ledger(tmp_path / "exp-hf")
    assert [(r["event"], r["step"]) for r in rows] == [("uploaded", 100), ("failed", 200), ("uploaded", 300)]
    assert set(branches(hub, tmp_path, REPO)) == {"global_step100", "global_step300"}
    written = [p for p in Path(said["path"]).rglob("*") if p.is_file()]
    assert not [p for p in written if TOKEN.encode() in p.read_bytes()]
