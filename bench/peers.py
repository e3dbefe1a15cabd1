"""The launchers that are compared, each in a scratch environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / ".cache/bench"
EXAMPLE = ROOT / "hpc_frontier/hpc_frontier/examples/lora-2x8.toml"
SUBMITIT_DRY = "from submitit.slurm.slurm import _make_sbatch_string as s; print(s('true', 'x', nodes=2))"
SUBMITIT = "import submitit; submitit.AutoExecutor('jobs', cluster='slurm').submit(print)"
TORCHX = ("-s", "slurm", "dist.ddp", "-j", "2x4", "--script", "train.py")
LAUNCH = ("-N", "2", "-n", "4", "--scheduler", "slurm")


@attrs.frozen(kw_only=True)
class Peer:
    """A package and what is measured of it; a command's first word is a program of its environment."""

    package: str
    start: tuple[str, ...]
    dry: tuple[str, ...]
    submit: tuple[str, ...]
    note: str

    @property
    def folder(self) -> Path:
        return SCRATCH / self.package.partition("[")[0]

    def argv(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command with the program's path."""
        return (str(self.folder / "bin" / command[0]), *command[1:])

    def install(self) -> str:
        """Install into the scratch environment; why not, where that fails."""
        stamp = self.folder / "installed"
        if stamp.exists() and not self.package.startswith("hpctrain"):  # ours changes every day
            return ""
        pip = (sys.executable, "-m", "pip", "--python", str(self.folder / "bin/python"))
        for argv in (
            (sys.executable, "-m", "venv", "--clear", "--without-pip", str(self.folder)),
            (*pip, "install", "-q", f"--find-links={ROOT / 'dist'}", self.package),
        ):
            done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
            if done.returncode:
                return f"{self.package}: {done.stderr.strip().splitlines()[-1]}"
        stamp.touch()
        return ""


PEERS = (
    Peer(
        package="hpctrain[clusters]",
        start=("hpctrain", "--help"),
        dry=("hpctrain", "plan", str(EXAMPLE)),
        submit=("hpctrain", "submit", "run.toml"),
        note="every key checked, facts with sources, placement, limits",
    ),
    Peer(
        package="torchx",
        start=("torchx", "--help"),
        dry=("torchx", "run", "--dryrun", *TORCHX),
        submit=("torchx", "run", *TORCHX),
        note="arguments of one component checked",
    ),
    Peer(
        package="submitit",
        start=("python", "-c", "import submitit"),
        dry=("python", "-c", SUBMITIT_DRY),
        submit=("python", "-c", SUBMITIT),
        note="a library: `import`, a script's text, `submit(print)`; nothing checked",
    ),
    Peer(
        package="hpc-launcher",
        start=("launch", "--help"),
        dry=("launch", *LAUNCH, "--dry-run", "hostname"),
        submit=("launch", *LAUNCH, "--bg", "hostname"),
        note="nothing checked",
    ),
)
