"""`hpctrain check --trainer`: a trainer's own configuration files, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, raise_fatal
from hpctrain.hooks.load import find, load
from hpctrain.hooks.manager import Hooks
from hpctrain.runfile.reading.text import read_text


def check(out: Out, trainer: str, paths: Sequence[Path], gpus: int, nodes: int) -> int:
    """Say everything that the trainer's plugin finds in these files; 0 when they fit."""
    entry = find("trainers", trainer)
    module = load(entry)
    hooks = Hooks()
    hooks.add(entry, module)
    if not hooks.answers("check_config"):
        raise ConfigError.of("usage", f"the trainer {trainer} has no files of its own to check")
    if not paths:
        raise ConfigError.of("usage", "no file is named", hint=f"hpctrain check --trainer {trainer} FILE")
    files = {str(path): read_text(path) for path in paths}
    answers = hooks.call("check_config", files=files, gpus=gpus, nodes=nodes)
    problems = [problem for answer in answers for problem in answer]
    raise_fatal(problems)
    if out.flags.json:
        from hpctrain.ui.problem import problem_json

        out.document("check-files", trainer=trainer, problems=[problem_json(p) for p in problems])
        return 0
    out.warn(problems)
    out.lines([f"{' '.join(files)}: ok for {gpus} GPUs"])
    return 0
