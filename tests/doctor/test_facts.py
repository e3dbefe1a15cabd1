"""What follows from answers of Slurm, PBS, modules, Lustre and a server's clock; old sources; the command."""

from __future__ import annotations

import datetime
import email.utils
import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from hpctrain.doctor import ages, modules, network, scheduler, storage
from hpctrain.doctor.question import Answer, Verdict
from hpctrain.doctor.site import is_version
from hpctrain.runfile.facts import load_cluster
from hpctrain_plugins.schedulers import pbs, slurm
from tests.doctor.rig import cluster, examined, findings, question, site, verdicts
from tests.e2e.product import Product

OUTPUTS = Path(__file__).parents[1] / "cli/outputs"
"""Of a real Slurm 24.11, that of a twin of Leonardo with two nodes."""
POLARIS = Path(__file__).parents[1] / "thirdparty/hpctrain-polaris/hpc_polaris"
OK, DIFFERS, UNKNOWN, SILENT = Verdict.OK, Verdict.DIFFERS, Verdict.UNKNOWN, Verdict.SILENT
PARTITION = "PartitionName={name}\n   Default={default} MaxNodes={nodes} MaxTime={time} State=UP\n"
LOADED = "".join(f"@hpctrain module {number} 0\n" for number in range(8))


def partitions(*rows: tuple[str, str, str]) -> str:
    """`scontrol show partition`, the words that are read of it."""
    return "\n".join(PARTITION.format(name=n, nodes=c, time=t, default="NO") for n, c, t in rows)


def test_a_real_slurm_agrees_with_the_facts_that_it_was_made_of() -> None:
    text = "".join(p.read_text() for p in sorted(OUTPUTS.iterdir()) if "PartitionName=" in p.read_text())
    asked = question(scheduler.questions(site(cluster("leonardo"))), "scheduler partitions")
    lines = findings(asked, text)
    assert lines["queue prod"].verdict is OK
    assert DIFFERS not in verdicts(lines).values(), lines


def test_limits_of_partitions_below_and_above_the_facts() -> None:
    asked = question(scheduler.questions(site(cluster("frontier"))), "scheduler partitions")
    lines = findings(asked, partitions(("batch", "9472", "06:00:00"), ("extended", "64", "2-00:00:00")))
    assert lines["queue batch-bin3: max_time"].verdict is DIFFERS
    assert lines["queue batch-bin4: max_time"].verdict is OK
    assert "queue batch-bin5: max_time" not in lines, "two hours of a bin are the site's own rule"
    assert lines["queue extended: max_time"].verdict is DIFFERS, "a limit that was raised is worth a fact"
    assert lines["queue extended: max_nodes"].verdict is OK
    assert "queue debug: max_time" not in lines, "its QoS has a limit of its own"


def test_a_partition_that_is_gone() -> None:
    asked = question(scheduler.questions(site(cluster("frontier"))), "scheduler partitions")
    lines = findings(asked, partitions(("batch2", "9472", "12:00:00"), ("extended", "64", "1-00:00:00")))
    gone = {fact for fact, line in lines.items() if line.verdict is DIFFERS}
    assert gone == {*(f"queue batch-bin{n}" for n in range(1, 6)), "queue debug"}
    assert lines["queue debug"].found.startswith("no --partition=batch: there are --partition=batch2")


def test_a_qos_with_other_limits_or_none() -> None:
    asked = question(scheduler.questions(site(cluster("frontier"))), "scheduler limits of the QoS")
    lines = findings(asked, "normal|||\ndebug|01:00:00|2|\n")
    assert verdicts(lines) == {
        "queue debug": OK,
        "queue debug: max_time": DIFFERS,
        "queue debug: jobs_per_user": DIFFERS,
    }
    assert verdicts(findings(asked, "normal|||\n")) == {"queue debug": DIFFERS}
    assert verdicts(findings(asked, "debug|||\n")) == {"queue debug": OK}


def test_nodes_may_have_more_than_the_facts_and_not_less() -> None:
    asked = question(scheduler.questions(site(cluster("frontier"))), "scheduler nodes")
    more = verdicts(findings(asked, "batch|9800|112|524288|gpu:8(S:0-1)\nbatch|1|4|2000|(null)\n"))
    assert set(more.values()) == {OK}
    less = verdicts(findings(asked, "batch|9000|32|400000|gpu:mi250:4(S:0)\n"))
    assert less == {
        "hardware.cores_per_node": DIFFERS,
        "hardware.memory_gb": DIFFERS,
        "hardware.nodes": OK,
        "hardware.gpus_per_node": DIFFERS,
    }


@pytest.mark.parametrize(("account", "verdict"), [("abc123", OK), ("xyz", DIFFERS), ("", UNKNOWN)])
def test_an_account(account: str, verdict: Verdict) -> None:
    asked = question(scheduler.questions(site(cluster("frontier"), account)), "scheduler your accounts")
    line = findings(asked, "abc123\ndef456\n")["accounts that you may charge"]
    assert (line.verdict, line.found) == (verdict, "abc123 def456")


def test_queues_of_pbs() -> None:
    facts = load_cluster(POLARIS)
    asked = question(scheduler.questions(site(facts)), "scheduler queues")
    limits = {"queue_type": "Execution", "resources_max": {"walltime": "01:00:00", "nodect": "2"}}
    queues = {word: {"queue_type": "Route"} for word in ("prod", "preemptable", "capacity", "debug-scaling")}
    told = {"pbs_version": "2024.1.2", "Queue": {**queues, "debug": limits}}
    lines = findings(asked, json.dumps(told))
    assert lines["queue debug"].verdict is OK
    assert lines["version of pbs"].found == "2024.1.2"
    limits["resources_max"] = {"walltime": "00:10:00"}
    wrong = findings(asked, json.dumps({"Queue": {**queues, "debug": limits}}))
    assert wrong["queue debug: max_time"].verdict is DIFFERS
    down = findings(asked, '{"timestamp": 1, "pbs_version": "23.06.06", "pbs_server": "pbs"}', code=255)
    assert set(verdicts(down).values()) == {SILENT}


@pytest.mark.parametrize(
    ("starts", "line", "is_job"),
    [
        (slurm.starts_job, "srun -p debug -t 5 -N1 hostname", True),
        (slurm.starts_job, "for p in a b; do srun -p $p true; done", True),
        (slurm.starts_job, "srun --help | grep -c -- --environment", False),
        (slurm.starts_job, "sbatch --version; grep x /etc/os-release", False),
        (slurm.starts_job, "sbatch --test-only -A a --wrap true", False),
        (slurm.starts_job, "sinfo -h -o '%P %l'", False),
        (pbs.starts_job, "qsub -I -l select=1", True),
        (pbs.starts_job, "qstat -Qf prod", False),
    ],
)
def test_which_commands_start_jobs(starts: object, line: str, is_job: bool) -> None:
    assert callable(starts)
    assert starts(line) is is_job


def test_a_module_that_does_not_load_is_named_with_lmods_words() -> None:
    asked = question(modules.questions(site(cluster("frontier"))), "modules of builds")
    out = LOADED.replace("module 4 0", "module 4 1")
    err = 'Lmod has detected the following error: The following module(s) are unknown: "rocm/7.1.1"\n'
    lines = findings(asked, out, err=err)
    assert [fact for fact, line in lines.items() if line.verdict is DIFFERS] == [
        "module rocm/7.1.1 of builds"
    ]
    assert "are unknown" in lines["module rocm/7.1.1 of builds"].found


def test_modules_of_another_architecture_are_not_known() -> None:
    facts = cluster("olivia")
    asked = question(modules.questions(site(facts)), "modules of training")
    lines = findings(asked, LOADED.replace(" 0\n", " 1\n"))
    assert DIFFERS not in verdicts(lines).values()
    assert lines["module NRIS/GPU of training"].verdict is UNKNOWN


def test_a_value_of_a_module_that_wins_over_the_facts() -> None:
    asked = question(modules.questions(site(cluster("frontier"))), "modules of training")
    lines = findings(
        asked, LOADED + "@hpctrain set NCCL_CROSS_NIC 0\n@hpctrain set FI_MR_CACHE_MONITOR kdreg2\n"
    )
    assert lines["NCCL_CROSS_NIC, which a module sets"].verdict is DIFFERS
    assert lines["FI_MR_CACHE_MONITOR, which a module sets"].verdict is OK
    assert "FI_CXI_RDZV_PROTO, which a module sets" not in lines, "what no module sets is the facts' value"


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("owner -u 7\n/l  100 0 52428800 - 10 0 0 -\nend\n", {"room of home (GB)": OK}),
        ("owner -u 7\n/l  100 0 10485760 - 10 0 0 -\nend\n", {"room of home (GB)": DIFFERS}),
        ("owner -u 7\n/l  52428700* 0 52428800 - 10 0 0 -\nend\n", {"room of home (GB)": DIFFERS}),
        (
            "owner -u 7\n/l/long\n    100 0 52428800 - 1000 0 1000 -\nend\n",
            {"room of home (GB)": OK, "room of home (files)": DIFFERS},
        ),
        ("owner -u 7\n/l  100 0 0 - 10 0 0 -\nend\n", {"quota of home": UNKNOWN}),
        ("owner -u 7\n/l  1 0 9 - 1 0 0 -\nowner -p 9\n/l 9 0 5", {"quota of home": SILENT}),
    ],
)
def test_quotas_of_lustre(quota: str, expected: dict[str, Verdict]) -> None:
    asked = question(storage.questions(site(cluster("frontier"))), "quota home")
    assert verdicts(findings(asked, quota)) == expected


@pytest.fixture
def slow_clock() -> Iterator[str]:
    """A server ten minutes behind this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response_only(200)
            self.send_header("Date", email.utils.formatdate(time.time() - 600, usegmt=True))
            self.end_headers()

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_clock_that_is_off(slow_clock: str) -> None:
    one = site(cluster("isambard"), HF_ENDPOINT=slow_clock)
    lines = {line.fact: line for line in examined(one, [question(network.questions(one), "the hub")])}
    assert lines[f"the hub, {slow_clock}"].verdict is OK
    assert lines["the clock"].verdict is DIFFERS
    assert lines["the clock"].found in ("+599 s", "+600 s", "+601 s")


def test_a_password_in_an_address_is_not_shown() -> None:
    one = site(cluster("isambard"), PIP_INDEX_URL="https://me:s3cret@index.example/simple")
    asked = question(network.questions(one), "the package index")
    line = next(iter(findings(asked, fault="too slow").values()))
    assert "s3cret" not in str(line)
    assert "s3cret" not in " ".join(asked.argv)
    assert "index.example" in line.fact


def test_a_proxy_that_is_off_and_one_that_only_nodes_reach() -> None:
    asked = question(network.questions(site(cluster("olivia"))), "proxy 10.63.2.48:3128")
    off = findings(asked, '{"fault": "[Errno 111] Connection refused", "refused": true}')
    far = findings(asked, '{"fault": "timed out", "refused": false}')
    assert [next(iter(lines.values())).verdict for lines in (off, far)] == [DIFFERS, UNKNOWN]


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("25.11.4, since 2026-04-07", "25.11.4", True),
        ("25.05", "25.05.3", True),
        ("25.05", "25.5.3", False),
        ("1.3.6", "apptainer version 1.4.5", False),
        ("gcc 7.5.0", "7.5.0", True),
        ("", "24.11.5", None),
    ],
)
def test_versions(expected: str, found: str, same: bool | None) -> None:
    assert is_version(expected, found) is same


def test_sources_that_nobody_looked_up_for_long() -> None:
    facts = cluster("frontier")
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    days = {0: today - datetime.timedelta(days=181), 1: today - datetime.timedelta(days=180)}
    checked = [days.get(number, today).isoformat() for number in range(len(facts.source))]
    sources = [attrs.evolve(source, checked=day) for source, day in zip(facts.source, checked, strict=True)]
    old = list(ages.questions(site(attrs.evolve(facts, source=tuple(sources)))))
    assert [q.findings(Answer())[0].source for q in old] == [facts.source[0].id]
    assert "181 days ago" in old[0].findings(Answer())[0].found


def test_the_command_here(here: Product) -> None:
    told = here.json("doctor", "local", code=None)
    assert told["schema"] == "hpctrain/doctor/1"
    keys = {"area", "fact", "verdict", "expected", "found", "source", "checked", "stale", "todo"}
    assert {frozenset(row) for row in told["findings"]} == {frozenset(keys)}
    assert sum(told["counts"].values()) == len(told["findings"])
    narrow = here("doctor", "local", "--all", code=None, COLUMNS="40").stdout
    assert "role home" in narrow
    assert here("doctor", "nowhere", code=2).stderr
    assert "no cluster is named" in here("doctor", code=2).stderr


OLD = """\
name = "frontier"

[[source]]
id = "old"
title = "a page"
url = "https://x.example"
checked = "2020-01-01"

[storage.home]
source = "old"
quota_gb = 10
"""


def test_stale_clusters(here: Product) -> None:
    assert "every source was looked up within 180 days" in here("clusters", "local", "--stale").stdout
    file = str(here.write(OLD, "site/frontier.toml").parent)
    told = json.loads(here("clusters", "--stale", "--json", HPCTRAIN_SITE=file).stdout)
    rows = [(row["cluster"], row["source"], set(row["facts"])) for row in told["sources"]]
    assert rows == [("frontier", "old", {f"storage.home.{key}" for key in ("path", "note", "quota_gb")})]
    shown = here("clusters", "frontier", "--stale", HPCTRAIN_SITE=file).stdout
    assert "https://x.example" in shown
    assert "2020-01-01" in shown
