"""A capture of somebody who wants in: root writes a twin's files from it, and root's bash reads them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.doctor import examination
from hpctrain.errors import ConfigError
from hpctrain.runfile.facts import load_facts
from tests.hostile.grounds import PARTITION
from tests.twin import captured, tree
from tests.twin.site_file import ROOT

COMMAND = "touch RAN"
SHELL = f"$({COMMAND})`{COMMAND}`\"; {COMMAND}; '"
NODES = "accel|76|288|808000|gpu:4(S:0-3)\n"
MARK = "@hpctrain"
HONEST = {
    "name": "login1\n",
    "scheduler partitions": PARTITION,
    "scheduler nodes": NODES,
    "scheduler version of Slurm": "slurm 24.11.5\n",
    "scheduler your accounts": "ACCOUNT\n",
    "scheduler limits of the QoS": "normal|2-00:00:00|10|node=4\n",
}
LOADED = f"{MARK} loaded first {{0}}\n{MARK} loaded last {{0}}\n"
LIBRARY = '{{"parts": {{"libfabric": {{"path": {0}, "version": {1}}}}}}}\n'
HOSTILE: Mapping[str, Mapping[str, str]] = {
    "a login node": {"name": f"x{SHELL}\n0.0.0.0 pypi.org\n"},
    "a login node above": {"name": "../../../etc/x"},
    "a partition": {"scheduler partitions": PARTITION.replace("accel", f"a;{COMMAND}")},
    "a word of a partition": {
        "scheduler partitions": PARTITION.replace("State=UP", "State=UP;$(touch\tRAN)")
    },
    "a program for Slurm": {"scheduler partitions": f"{PARTITION}   SuspendProgram=/tmp/x Prolog=/tmp/x\n"},
    "a node": {"scheduler partitions": PARTITION.replace("gpu-1-[1-76]", "../../x,$(touch\\ RAN),-n,a/b")},
    "nodes without an end": {"scheduler partitions": PARTITION.replace("1-76", "0-99999999,1-9999999")},
    "nodes of digits": {"scheduler partitions": PARTITION.replace("1-76", f"1-{'9' * 5000}")},
    "a QoS": {"scheduler limits of the QoS": f"{SHELL}|1|1|1\nhigh {COMMAND}|-i|1|1\n../x|1|1|1\n"},
    "a module above": {"modules of training": LOADED.format("a/../../../../x:../../x:/etc/x")},
    "a module that is Lua": {"modules of training": LOADED.format(f'x")os.execute("{COMMAND}")--')},
    "a module that is bash": {"modules of training": LOADED.format(f"x{SHELL}")},
    "variables": {"variables of paths": f"SCRATCH={SHELL}\nBASH_ENV=/tmp/x\nx;{COMMAND}=1\nPATH=/tmp\n"},
    "a path with a way back": {"variables of paths": "SCRATCH=/a/../../..\nPROJECTDIR=/a b\n"},
    "braces": {"variables of paths": "SCRATCH={user.__class__}{0}{\n"},
    "a library above": {"network stack": LIBRARY.format('"/../../x.so"', '"1.2.3"')},
    "a library with a line end": {"network stack": LIBRARY.format(json.dumps(f"/x\n{COMMAND}"), '"1.2.3"')},
    "a library that is a number": {"network stack": LIBRARY.format("3", "[]")},
    "no libraries": {"network stack": '{"parts": [1]}\n'},
    "a program": {"verify python3.12 --version": f"{SHELL}\n", "verify hostname -f": f"'\n{COMMAND}\n'"},
    "what nobody asked": {
        f"verify bash {COMMAND}": "x\n",
        "verify ls /": "/../../../x\n/etc/cron.d/x\n",
        "verify module avail": "../../x\n",
        "verify x && printenv PROMPT_COMMAND BASH_ENV": f"{COMMAND}\n/tmp/x\n",
        f"proxy $({COMMAND}):x": '"status"',
        "proxy a:70000": '"status"',
    },
}


def written(cluster: str, answers: Mapping[str, str], folder: Path) -> Path:
    """The files of a twin that is made of these answers."""
    rows = {name: {"out": out, "err": "", "code": 0, "fault": ""} for name, out in answers.items()}
    document = {"schema": "hpctrain/capture/1", "cluster": cluster, "at": "2026-01-01", "answers": rows}
    (folder / "root/etc").mkdir(parents=True)
    (folder / "capture.json").write_text(json.dumps(document))
    for name in ("passwd", "group"):
        (folder / "root/etc" / name).touch()
    files = folder / "a/b/c/d/files"
    files.mkdir(parents=True)
    tree.write(captured.site(folder / "capture.json"), files, folder / "root", ())
    return files


def run(words: list[str], folder: Path) -> int:
    return subprocess.run(words, cwd=folder, timeout=20, check=False, capture_output=True).returncode


@pytest.mark.parametrize("cluster", ["olivia", "isambard"])
@pytest.mark.parametrize("attack", HOSTILE)
def test_nothing_of_a_capture_runs_or_leaves_the_twin(cluster: str, attack: str, tmp_path: Path) -> None:
    before = written(cluster, HONEST, tmp_path / "honest")
    try:
        files = written(cluster, {**HONEST, **HOSTILE[attack]}, tmp_path / "hostile")
    except ConfigError as error:
        assert "holds an answer that no machine gives" in str(error)  # noqa: PT017
        return
    outside = {path for path in (tmp_path / "hostile").rglob("*") if not path.is_relative_to(files)}
    assert {path.name for path in outside} == {"capture.json", "root", "etc", "passwd", "group", *"abcd"}
    for path in (path for path in files.rglob("*") if path.is_file()):
        honest = before / path.relative_to(files)
        text = path.read_text()
        if honest.exists() and honest.read_text() == text:
            continue
        if path.parent.name == "bin":
            run(["bash", str(path), "--version"], tmp_path)
        else:
            assert not [word for word in ("RAN", "/tmp/x") if word in text]
    for script in ("etc/profile.d/00-site.sh", "twin/site.env"):
        assert run(["bash", "-c", f". {files / script}"], tmp_path) == 0
    assert not list(tmp_path.rglob("RAN"))


def test_what_is_asked_is_what_the_facts_ask() -> None:
    """The attacks above are answers to real questions, or to none at all."""
    names = set()
    for cluster in ("olivia", "isambard"):
        facts = load_facts(ROOT / f"hpc_{cluster}/hpc_{cluster}").cluster
        asked = examination.site_of(facts, {"HOME": "/", "USER": "alice"}, "a")
        names |= {question.name for question in examination.questions(asked)}
    answers = {name for attack, rows in HOSTILE.items() for name in rows if attack != "what nobody asked"}
    assert sorted({*answers, *HONEST} - names) == []
