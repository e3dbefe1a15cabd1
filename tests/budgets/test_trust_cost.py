"""What judging whose files are used takes of a submission: at most a twentieth of its CPU time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import here as here
from tests.e2e.product import Product, small

SHARE = 0.05
ASSETS = 8
MEASURE = """
import json, sys, time
from hpctrain_job.files import trust

spent, calls, depth = 0.0, 0, 0


def counted(judge):
    def judged(*args, **options):
        global spent, calls, depth
        began, depth = time.process_time(), depth + 1
        try:
            return judge(*args, **options)
        finally:
            depth -= 1
            if not depth:
                spent, calls = spent + time.process_time() - began, calls + 1

    return judged


for name in ("folder", "owner_fault", "file_fault", "read_fault", "artifact"):
    setattr(trust, name, counted(getattr(trust, name)))
from hpctrain.cli.app import run

try:
    code = run(sys.argv[2:])
finally:
    document = {"spent": spent, "calls": calls, "all": time.process_time()}
    open(sys.argv[1], "w").write(json.dumps(document))
sys.exit(code)
"""
"""The command line in a process that counts; imports and the start of Python are part of a submission."""


def test_trust_is_a_twentieth_of_a_submission(here: Product, tmp_path: Path) -> None:
    """Of a run whose artifacts all exist, in a role that is shared with a project: there is much to judge."""
    rows = "".join(f'a{n} = {{ command = ["bash", "-c", "echo {n} >$WORK"] }}\n' for n in range(ASSETS))
    site = tmp_path / "site.toml"
    site.write_text('[storage.assets]\nshare = "project"\nowners = ["@users", "somebody", "4711"]\n')
    here.write(small("true", assets=f"\n[assets]\n{rows}"))
    here("submit", "--wait", HPCTRAIN_SITE=str(site))
    measures = []
    for number in range(3):
        report = tmp_path / f"{number}.json"
        words = (sys.executable, "-c", MEASURE, str(report), "submit")
        environ = {**here.environment, "HPCTRAIN_SITE": str(site)}
        subprocess.run(words, cwd=here.folder, env=environ, check=True, timeout=120, capture_output=True)
        measures.append(json.loads(report.read_text()))
        here("cancel", "small", code=None)
    print(measures)
    assert all(measure["calls"] > ASSETS for measure in measures)
    assert min(measure["spent"] / measure["all"] for measure in measures) <= SHARE
