"""Run many settings in one process with torch: `hostile.py CASES` prints a JSON list of outcomes.

Importing the libraries takes longer than most cases; the trainer itself starts anew for each one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from hpctrain_trl.train import main


def outcome(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The exit code and what was said."""
    folder.mkdir()
    os.environ["HPC_RUN"] = str(folder)
    config = folder / "trl.json"
    config.write_text(json.dumps(values))
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = main(["--config", str(config)])
    return {"code": code, "log": said.getvalue(), "trained": (folder / "metrics.jsonl").exists()}


if __name__ == "__main__":
    cases = json.loads(Path(sys.argv[1]).read_text())
    base = Path(sys.argv[1]).parent
    print(json.dumps({name: outcome(base / name, values) for name, values in cases.items()}))
