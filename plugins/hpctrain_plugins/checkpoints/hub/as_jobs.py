"""`publish --job`: a conversion job for each checkpoint, and the upload behind them all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpctrain.command import Out
from hpctrain.plugin import After, Cmd, ConfigError, EnvVar, Launch, Layer, Need, Secret, Step, When
from hpctrain_plugins.checkpoints.cli import as_job
from hpctrain_plugins.checkpoints.hub.experiment import HubCheckpoint
from hpctrain_plugins.checkpoints.hub.ledger import Ledger
from hpctrain_plugins.checkpoints.hub.work import TO_CONVERT, Task, planned

NAME = "publish"

_MINUTES = 60
_OF_THE_HUB = ("HF_ENDPOINT", "HF_HOME", "HF_HUB_", "SSL_CERT_FILE")
"""What the hub's library reads besides the token; as the user has it here, the upload has it too."""

_OF_CONVERSIONS = ("dtype", "tokenizer", "config")
_LOCAL_OPTIONS = ("job", "on", "account", "dry_run", "evaluate", "eval_tasks", "upload_delay")


def submit(
    out: Out, source: str, repository: str, task: Task, ledger: Ledger, settings: Mapping[str, Any]
) -> None:
    """Submit what is left as one run; the uploading step does what this command would do here."""
    if settings["evaluate"]:
        raise ConfigError.of(
            "usage",
            "--eval needs a GPU, and the step that uploads has the network instead",
            hint="without --eval; when all is uploaded, the same command with --eval and without --job",
        )
    with ledger.lock():  # refuse while another command publishes the same
        conversions = [_conversion(task, checkpoint, settings) for checkpoint in _to_convert(task, ledger)]
    steps = [*conversions, _upload(out, source, repository, task, settings, conversions)]
    where = as_job.Where(on=settings["on"], account=settings["account"])
    as_job.submit(out, steps, where, NAME, ("huggingface",))


def _to_convert(task: Task, ledger: Ledger) -> list[HubCheckpoint]:
    rows = zip(task.checkpoints, planned(task, ledger), strict=True)
    return [f for f, row in rows if row.model == TO_CONVERT]


def _conversion(task: Task, checkpoint: HubCheckpoint, settings: Mapping[str, Any]) -> Step:
    options = {name: settings[name] for name in _OF_CONVERSIONS if settings[name] is not None}
    out = task.conversion_of(checkpoint)
    return as_job.conversion(checkpoint.path, "hf", out, options, name=f"convert-{checkpoint.step}")


def _upload(
    out: Out, source: str, repository: str, task: Task, settings: Mapping[str, Any], before: list[Step]
) -> Step:
    """The upload, which starts however the conversions ended: one damaged checkpoint does not stop the
    rest."""
    path = Path(source)
    options = {k: v for k, v in settings.items() if k not in _LOCAL_OPTIONS and v is not None}
    argv = (
        str(path.absolute()) if path.exists() else source,
        repository,
        "--out",
        str(task.place.absolute()),
    )
    seconds = ("--upload-delay", f"{task.delay:.0f}") if task.delay else ()
    return Step(
        name=NAME,
        commands=(Cmd((*as_job.program(), NAME, *argv, *as_job.words(options), *seconds)),),
        needs=frozenset({Need.NETWORK}),
        after=tuple(After(step.name, When.ANY) for step in before),
        launch=Launch(cpus_per_rank=2),
        minutes=_MINUTES + int(task.delay // 60),
        layer=Layer(env=(_token(), *_hubs(out.environ))),
    )


def _token() -> EnvVar:
    return EnvVar(name="HF_TOKEN", value=Secret("huggingface"), why="uploads ask who you are")


def _hubs(environ: Mapping[str, str]) -> tuple[EnvVar, ...]:
    why = "as it is where `hpctrain publish` was typed"
    names = sorted(n for n in environ if n.startswith(_OF_THE_HUB) and "TOKEN" not in n)
    return tuple(EnvVar(name=name, value=environ[name], why=why) for name in names)
