"""Machines in trouble: a verdict on each line, in time, whatever the programs do."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from hpctrain.doctor import examination, machine, modules, network, scheduler, storage, verify
from hpctrain.doctor.asking import Asker
from hpctrain.doctor.question import Answer, Question, Verdict
from hpctrain.model.cluster import Verify
from hpctrain.run.system.tools import Tools
from tests.clusters import HOMES
from tests.doctor import rig
from tests.doctor.rig import cluster, examined, findings, question, site
from tests.e2e.product import Product
from tests.patience import within

HANGS = "sleep 100"
ANSWERS = (Answer(fault="it is not here"), Answer(), Answer(out="\x00?\n", code=3), Answer(code=-9))
NONSENSE = "echo '<html><title>503 Service Unavailable</title></html>'"


@pytest.mark.parametrize("name", sorted(HOMES))
def test_every_question_has_a_line_without_any_answer(name: str) -> None:
    one = site(cluster(name), PROJECTDIR="/projects/p1", SCRATCHDIR="/scratch/p1")
    questions = examination.questions(one)
    assert len({q.name for q in questions}) == len(questions), "a capture knows them by their names"
    for q in questions:
        for answer in ANSWERS:
            lines = q.findings(answer)
            assert lines, q.name
            assert all(line.found or line.verdict is not Verdict.SILENT for line in lines), q.name
            if q.argv:
                assert answer.fault == "" or lines[0].verdict in (Verdict.SILENT, Verdict.UNKNOWN), q.name


def test_a_machine_without_slurm(tmp_path: Path) -> None:
    path = rig.programs(tmp_path / "bin")
    one = site(cluster("frontier"), PATH=str(tmp_path / "bin"))
    assert path
    lines = examined(one, scheduler.questions(one))
    assert {line.verdict for line in lines} == {Verdict.SILENT}
    missing = {f"{name} is not here" for name in ("sinfo", "scontrol", "sacctmgr")}
    assert {line.found for line in lines} == missing


def test_programs_that_hang_talk_nonsense_or_refuse(tmp_path: Path) -> None:
    path = rig.programs(
        tmp_path / "bin",
        sinfo=HANGS,
        scontrol=NONSENSE,
        sacctmgr="echo 'sacctmgr: error: Access/permission denied' >&2; exit 1",
    )
    one = site(cluster("frontier"), PATH=path)
    with within(10):
        quick = [attrs.evolve(q, seconds=1) for q in scheduler.questions(one)]
        lines = {line.fact: line for line in examined(one, quick)}
        assert {line.verdict for line in lines.values()} == {Verdict.SILENT}
        assert lines["version of Slurm"].found == "sinfo did not end within 1 s"
        assert lines["nodes"].found == "sinfo did not answer before", "what hung is not waited for again"
        assert (
            lines["partitions"].found == "scontrol said: <html><title>503 Service Unavailable</title></html>"
        )
        assert lines["limits of the QoS"].found.endswith("Access/permission denied")


def test_all_questions_together_have_a_limit(tmp_path: Path) -> None:
    path = rig.programs(tmp_path / "bin", **{f"hangs{number}": HANGS for number in range(4)})

    def asked(number: int) -> Question:
        argv = (f"hangs{number}",)
        return Question(name=str(number), area="x", fact="x", argv=argv, judge=lambda _: (), seconds=1)

    with within(6):
        answers = list(Asker(Tools({"PATH": path}, grace=0.2), 1.5).answers(map(asked, range(4))))
    assert [a.fault for _, a in answers][2:] == ["no time was left for it"] * 2


def test_lfs_that_hangs_is_asked_once(tmp_path: Path) -> None:
    one = site(cluster("frontier"), PATH=rig.programs(tmp_path / "bin", lfs=HANGS))
    quotas = [attrs.evolve(q, seconds=1) for q in storage.questions(one) if q.name.startswith("quota")]
    lines = examined(one, quotas)
    assert [line.verdict for line in lines] == [Verdict.SILENT] * len(quotas)
    assert [line.found for line in lines][1:] == ["lfs did not answer before"] * (len(quotas) - 1)


def test_a_broken_module_command() -> None:
    one = site(cluster("frontier"))
    asked = question(modules.questions(one), "modules of builds")
    none = findings(asked, out="Welcome\n@hpctrain none\n")
    assert none["modules of builds"].found == "no command `module` in a login shell"
    cut = findings(asked, out="@hpctrain module 0 0\n", err="/bin/lmod: No such file\n", code=127)
    assert cut["modules of builds"].verdict is Verdict.SILENT


def test_no_account_and_no_variable_are_lines_with_what_to_do() -> None:
    one = site(cluster("frontier"), account="")
    lines = {line.fact: line for q in storage.questions(one) for line in q.findings(Answer(fault="-"))}
    assert lines["role env"].verdict is Verdict.SILENT
    assert lines["role env"].todo == "hpctrain doctor --account ACCOUNT"
    one = site(cluster("isambard"))
    lines = {line.fact: line for q in storage.questions(one) for line in q.findings(Answer(fault="-"))}
    assert "$SCRATCHDIR is not set" in lines["role runs"].found


def test_a_full_home_and_one_that_is_not_yours() -> None:
    asked = question(storage.questions(site(cluster("frontier"))), "role home")
    full = findings(asked, "at=/ccs/home/me\nfolder=1\nwritable=1\nkib=52428800 1000\nfiles=100 50\n")
    assert full["room of home (GB)"].verdict is Verdict.DIFFERS
    assert full["room of home (GB)"].found.startswith("full: the file system of /ccs/home/me")
    assert "room of home (files)" not in full
    other = findings(asked, "at=/ccs/home\nfolder=1\nkib=52428800 52428800\nfiles=100 50\n")
    assert other["role home"].found == "you may not write to /ccs/home"
    gone = findings(asked, "at=/\nfolder=1\nwritable=1\n")
    assert gone["role home"].verdict is Verdict.DIFFERS


def test_no_network(tmp_path: Path) -> None:
    one = site(
        cluster("isambard"), HF_ENDPOINT="http://127.0.0.1:9", PIP_INDEX_URL="http://no.such.host.invalid/"
    )
    asked = [q for q in network.questions(one) if q.name in ("the hub", "the package index")]
    lines = {line.fact: line for line in examined(one, asked)}
    assert lines["the hub, http://127.0.0.1:9"].verdict is Verdict.DIFFERS
    assert lines["the package index, http://no.such.host.invalid/"].verdict is Verdict.DIFFERS
    assert lines["the clock"].verdict is Verdict.SILENT


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(out="Python 3.11.5\n"), Verdict.OK),
        (Answer(out="Python 3.6.15\n"), Verdict.DIFFERS),
        (Answer(err="ls: cannot access '/Python 3.11': No such file\n", code=2), Verdict.DIFFERS),
        (Answer(err="sh: line 1: python3: command not found\n", code=127), Verdict.SILENT),
        (Answer(err="python3: error: no server\n", code=1), Verdict.SILENT),
        (Answer(code=1), Verdict.DIFFERS),
        (Answer(out="SLES\n", err="sbatch: error: fetch_config: DNS SRV lookup failed\n"), Verdict.SILENT),
        (Answer(out="SLES\n", err="gcc: error: no input files\n"), Verdict.DIFFERS),
        (Answer(fault="bash did not end within 10 s"), Verdict.SILENT),
    ],
)
def test_what_a_row_of_verify_says(answer: Answer, verdict: Verdict) -> None:
    facts = cluster("isambard")
    row = Verify(fact="Python", command="python3 --version", expect=r"^Python 3\.1[1-9]|/Python 3\.11")
    one = site(attrs.evolve(facts, verify=(row,)))
    (asked,) = verify.questions(one)
    assert [line.verdict for line in asked.findings(answer)] == [verdict]


def test_no_row_of_verify_starts_a_job() -> None:
    for name in HOMES:
        for q in verify.questions(site(cluster(name))):
            line = " ".join(q.argv)
            assert "srun " not in line or "srun --help" in line, line
            assert "sbatch " not in line or "--test-only" in line or "sbatch --version" in line, line
    jobs = [q for name in HOMES for q in verify.questions(site(cluster(name))) if not q.argv]
    assert len(jobs) >= 10


def test_a_scheduler_that_cannot_be_asked_is_a_line() -> None:
    one = attrs.evolve(site(cluster("frontier")), scheduler=None)
    (asked,) = scheduler.questions(one)
    assert asked.findings(Answer())[0].verdict is Verdict.SILENT
    assert {q.findings(Answer())[0].verdict for q in verify.questions(one)} == {Verdict.UNKNOWN}


def test_a_driver_without_a_gpu_is_not_known() -> None:
    asked = question(machine.questions(site(cluster("leonardo"))), "driver")
    assert findings(asked, fault="nvidia-smi is not here")["driver of the GPUs"].verdict is Verdict.UNKNOWN
    failed = findings(asked, out="NVIDIA-SMI has failed because …\n", code=9)
    assert failed["driver of the GPUs"].verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_site_without_slurm_is_examined_to_the_end_in_a_minute(name: str, here: Product) -> None:
    """By the command: every line of the scheduler could not be asked, whatever stands beside it."""
    path = rig.programs(here.folder / "bin", lfs=HANGS, module=HANGS)
    for program in ("sinfo", "scontrol", "sacctmgr", "sbatch", "squeue", "srun"):
        tell = f"echo '{program}: error: fetch_config: DNS SRV lookup failed' >&2; exit 1"
        rig.programs(here.folder / "bin", **{program: tell})
    with within(60):
        words = ("doctor", name, "--account", "p1", "--json")
        found = json.loads(here(*words, code=7, PATH=path).stdout)
    lines = [row for row in found["findings"] if row["area"] == "scheduler"]
    assert {row["verdict"] for row in lines} == {"could not be asked"}, lines
    assert len(lines) >= 4
    said = [row for row in found["findings"] if "fetch_config" in row["found"]]
    assert {row["verdict"] for row in said} == {"could not be asked"}, said
