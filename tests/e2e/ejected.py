"""What `eject` wrote, carried out where hpctrain is poisoned: importing or calling it fails."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

WAIT = {"HPC_WAIT": "1", "HPC_POLL": "1"}


def poisoned(folder: Path) -> dict[str, str]:
    """The environment of `env -i` with an hpctrain in front that breaks whoever uses it."""
    package = folder / "poison/hpctrain"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('poisoned')\n")
    program = folder / "poison/bin/hpctrain"
    program.parent.mkdir()
    program.write_text("#!/bin/bash\nexit 99\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin", "PYTHONPATH": str(package.parent)}


def carried_out(script: str, environ: dict[str, str], before: tuple[str, ...] = (), limit: float = 60) -> str:
    """`bash run.sh` to the end of its jobs; what it printed."""
    words = [f"{name}={value}" for name, value in (environ | WAIT).items()]
    done = subprocess.run(
        [*before, "env", "-i", *words, "bash", script],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=limit * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def metrics(run: Path) -> list[dict[str, Any]]:
    """The rows of a run without what the clock decides."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k in ("step", "loss", "lr", "grad_norm")} for row in rows]
