"""A capture holds what the machine said and nothing of who asked; read again it says what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain.doctor import capture, examination
from hpctrain.doctor.question import Answer, Verdict
from hpctrain.errors import ConfigError
from hpctrain.runfile.reading.toml import loads
from tests.doctor.rig import cluster, site
from tests.e2e.product import Product

CANARIES = {
    "USER": "cnuser01",
    "LOGNAME": "cnlogin02",
    "HOME": "/home/cnproj03/cnhome04",
    "SSH_CLIENT": "203.0.113.77 51234 22",
    "SSH_CONNECTION": "198.51.100.78 51234 10.0.0.1 22",
    **{f"{name}_{number}": f"canary{number}value" for number, name in enumerate(
        ("HF_TOKEN", "WANDB_API_KEY", "MY_SECRET", "DB_PASSWORD", "AWS_ACCESS_KEY", "GIT_PASS", "CREDENTIAL",
         "SESSION_COOKIE", "OAUTH", "TOKEN_FILE"), 10,
    )},
}  # fmt: skip
ACCOUNT = "cnacc05"
OTHERS = ("cnacc06", "cnacc07")
SHAPES = (
    "hf_abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwx",
    "sk-abcdefghijklmnopqrstuvwx",
    "github_pat_abcdefghijklmnopqrst",
    "AKIAABCDEFGHIJKLMNOP",
)
MAILS = ("cn.mail08@example.org", "cnmail09@mail.example.ac.uk")
URL_SECRETS = ("cnpw20", "cnpw21")
LISTED = ("cnproj30", "cnproj31", "cngroup32")


def secrets() -> list[str]:
    """Every word that must not be found in a capture."""
    variables = [value.split()[0] for value in CANARIES.values()]
    return [*variables, ACCOUNT, *OTHERS, *SHAPES, *MAILS, *URL_SECRETS, *LISTED, "cnhome04"]


def leaky(name: str) -> str:
    """What a chatty site might print, with everything in it."""
    if name == "scheduler your accounts":
        return "\n".join((ACCOUNT, *OTHERS)) + "\n"
    words = " ".join(value for value in [*CANARIES.values(), ACCOUNT, *OTHERS, *SHAPES, *MAILS])
    urls = " ".join(f"https://me:{word}@proxy.example:3128" for word in URL_SECRETS)
    upper = CANARIES["USER"].upper()
    listed = f"AllowGroups={LISTED[2]} AllowAccounts={LISTED[0]},{LISTED[1]} AllowQos=ALL"
    paths = (
        f"/lustre/orion/{ACCOUNT}/scratch/{CANARIES['USER']}/x {ACCOUNT}_g {upper} wandb: {CANARIES['USER']}."
    )
    record = f"PartitionName=batch\n   {listed}\n   MaxTime=06:00:00 MaxNodes=9472 State=UP"
    return f"{record}\nWelcome {words}\n{urls}\n{paths}\n"


def test_thirty_canaries_do_not_leave_the_machine(tmp_path: Path) -> None:
    one = site(cluster("frontier"), ACCOUNT, **CANARIES)
    answers = [
        (q, Answer(out=leaky(q.name), err=leaky(""), fault="" if n % 5 else leaky(""), code=n % 2))
        for n, q in enumerate(examination.questions(one))
    ]
    path = tmp_path / "capture.json"
    capture.write(path, one, answers)
    text = path.read_text(encoding="utf-8")
    assert len(set(secrets())) >= 30
    assert [word for word in secrets() if word.lower() in text.lower()] == []
    assert path.stat().st_mode & 0o777 == 0o600
    assert "MaxTime=06:00:00" in text, "what the machine said is still there"
    assert "AllowQos=ALL" in text


def test_root_is_nobodys_name_and_a_number_is_a_users_before_a_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture made by root had UID for every 0; users and their own groups often have one number."""
    out = "MaxNodes=0 files=0 /local/user/61001 uid 61001 root"
    for uid, expected in (
        (0, "MaxNodes=0 files=0 /local/user/GROUP uid GROUP root"),
        (61001, "MaxNodes=0 files=0 /local/user/UID uid UID root"),
    ):
        monkeypatch.setattr("os.getuid", lambda uid=uid: uid)
        monkeypatch.setattr("os.getgroups", lambda: [0, 61001])
        one = site(cluster("frontier"), USER="root" if uid == 0 else "cnuser01")
        path = tmp_path / f"{uid}.json"
        capture.write(path, one, [(examination.questions(one)[0], Answer(out=out))])
        assert capture.read(path).answers["name"].out == expected


def test_a_project_inside_of_an_account_is_taken_out_alone_too(tmp_path: Path) -> None:
    """Isambard's accounts are `brics.PROJECT`; folders and users have the project's own name."""
    one = site(cluster("isambard"), "brics.cnp33", HOME="/home/cnp33/me.cnp33")
    path = tmp_path / "c.json"
    out = "/projects/cnp33/x /scratch/cnp33/me.cnp33 brics.cnp33 /home/cnp33/me.cnp33/y"
    capture.write(path, one, [(examination.questions(one)[0], Answer(out=out))])
    text = capture.read(path).answers["name"].out
    assert text == "/projects/PROJECT/x /scratch/PROJECT/USER.PROJECT ACCOUNT HOME/y"


def test_a_row_that_asks_for_a_name_is_no_difference_once_the_name_is_out(tmp_path: Path) -> None:
    """Olivia's group is `nn` with digits and `k`; a capture has a word in its place."""
    facts = site(cluster("olivia"), "nn1234k", USER="kari")
    (row,) = [q for q in examination.questions(facts) if q.name == "verify id -Gn"]
    capture.write(tmp_path / "mine.json", facts, [(row, Answer(out="kari nn1234k\n"))])
    assert "nn1234k" not in (tmp_path / "mine.json").read_text()
    (line,) = capture.examined(tmp_path / "mine.json", facts)
    assert line.verdict is Verdict.SILENT
    assert "names you or your project" in line.found
    capture.write(tmp_path / "other.json", facts, [(row, Answer(out="kari users\n"))])
    (line,) = capture.examined(tmp_path / "other.json", facts)
    assert line.verdict is Verdict.DIFFERS, "a group that is not there is one"


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    path.write_text("mine")
    with pytest.raises(Exception, match="capture"):
        capture.write(path, site(cluster("frontier")), [])
    assert path.read_text() == "mine"


def test_a_capture_read_again_says_the_same(tmp_path: Path) -> None:
    one = site(cluster("frontier"), "ACCOUNT")
    told = {
        "scheduler partitions": "PartitionName=batch\n MaxTime=06:00:00 MaxNodes=9472\n",
        "scheduler version of Slurm": "slurm 26.05.1\n",
        "architecture": "x86_64\n",
    }
    answers = [(q, Answer(out=told.get(q.name, ""))) for q in examination.questions(one)]
    capture.write(tmp_path / "c.json", one, answers)
    again = capture.examined(tmp_path / "c.json", one)
    assert {f for f in again if f.verdict is Verdict.DIFFERS} == {
        f for f in examination.examined(answers) if f.verdict is Verdict.DIFFERS
    }


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "nonsense", '{"schema": "hpctrain/capture/1", "cluster": "alps", "answers": {}}',
             '{"schema": "hpctrain/capture/1", "cluster": "frontier", "answers": {"name": {"out": 3}}}']
)  # fmt: skip
def test_a_file_that_is_no_capture(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="no capture of frontier"):
        capture.examined(path, site(cluster("frontier")))


def test_a_patch_of_the_facts(here: Product) -> None:
    partitions = ("PartitionName=batch MaxTime=12:00:00", "PartitionName=extended MaxTime=06:00:00")
    answers = {
        "scheduler partitions": "\n".join(partitions),
        "scheduler version of Slurm": "slurm 26.05.1\n",
        "scheduler nodes": "batch|9856|56|524288|gpu:4\n",
    }
    document = {
        "schema": "hpctrain/capture/1",
        "cluster": "frontier",
        "answers": {name: {"out": text} for name, text in answers.items()},
    }
    file = str(here.write(json.dumps(document), "c.json"))
    patch = here("clusters", "frontier", "--against", file, code=7).stdout
    facts = loads(patch)
    assert facts == {
        "hardware": {"gpus_per_node": 4},
        "facts": {"system": {"slurm": "26.05.1"}},
        "queue": [{"name": "extended", "max_time": "6h"}],
    }
    assert "the facts have 1d" in patch
    rows = here.json("clusters", "frontier", "--against", file, code=7)["facts"]
    assert {row["fact"] for row in rows} == {
        "version of slurm", "hardware.gpus_per_node", "queue extended: max_time",
    }  # fmt: skip
    assert "name it" in here("clusters", "--against", file, code=2).stderr


def test_a_capture_by_the_command(here: Product) -> None:
    done = here("doctor", "local", "--capture", "c.json", code=None)
    assert "read it before you send it" in done.stderr
    document = json.loads((here.folder / "c.json").read_text())
    assert document["answers"]["architecture"]["out"].strip()
    assert str(here.home) not in json.dumps(document)
