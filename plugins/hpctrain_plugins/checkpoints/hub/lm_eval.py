"""The evaluation after an upload: lm_eval, as its users start it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hpctrain.command import Tools
from hpctrain.plugin import ConfigError, StepFailed

_HOURS = 12


def judge(environ: Mapping[str, str], tasks: str) -> Callable[[Path, str], object]:
    """A function that evaluates a folder; ConfigError where lm_eval is not installed."""
    tools = Tools(environ, keep=("HF_HOME", "HF_TOKEN", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"))
    program = tools.which("lm_eval")
    if program is None:
        raise ConfigError.of("no-program", "lm_eval is not on PATH", hint="pip install lm_eval")

    def evaluated(folder: Path, revision: str) -> None:
        results = folder.parent / "eval" / revision
        results.mkdir(parents=True, exist_ok=True)
        argv = (program, "--model", "hf", "--model_args", f"pretrained={folder}", "--tasks", tasks)
        log = results / "lm_eval.log"
        code = tools.stream([*argv, "--output_path", str(results)], log=log, timeout=_HOURS * 3600)
        if code:
            raise StepFailed.of("eval", f"lm_eval ended with {code} on {revision}", where=str(log))

    return evaluated
