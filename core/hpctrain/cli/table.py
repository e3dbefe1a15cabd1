"""Every command: its group, its line of help. The module of the same name is imported when called."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "Begin": {
        "demo": "train a small model on this computer, from nothing, in minutes",
        "init": "write a run file, a plugin or a site file to start from",
        "clusters": "list the installed clusters, their facts and sources",
        "doctor": "ask this login node whether its cluster's facts still hold",
        "check": "report everything that is wrong with a run file",
    },
    "Run": {
        "plan": "show what would happen, where, and who decided it",
        "diff": "compare the same run on several clusters",
        "lock": "pin versions, revisions and digests",
        "build": "build only the environment of a run",
        "stage": "fetch only its models, datasets and code",
        "submit": "build what is missing, then submit the jobs",
        "continue": "resume a run: steps that wait, jobs that failed",
        "eject": "write plain scripts that run without hpctrain",
    },
    "On a compute node": {
        "exec": "run one command in the run's environment",
        "tunnel": "open an editor on a compute node",
        "run": "run inside an allocation you already have",
        "shell": "open a shell in the run's environment",
    },
    "Watch": {
        "watch": "show a run as it goes on: curve, log, time left",
        "status": "show the state of a run and its steps",
        "logs": "show what a step printed",
        "diagnose": "explain why a run failed and how to fix it",
        "metrics": "show loss, learning rate, tokens per second",
        "report": "write plots, settings and costs of runs as one HTML file",
        "checkpoints": "list what a run saved, and whether it is whole",
        "runs": "list your runs",
        "nodes": "list nodes that failed, avoid or forgive one",
        "cancel": "end a run",
        "sync": "upload what a run logged offline for W&B",
    },
    "After": {
        "convert": "convert a checkpoint to another format, without torch",
        "publish": "upload checkpoints as revisions on the hub",
        "data": "token files: prepare, count, check, show or mix them",
    },
    "Extend": {
        "plugins": "list installed plugins, and why one is unusable",
        "schema": "print the JSON schema of the run file, for editors",
        "completion": "print a completion script for bash, zsh or fish",
        "help": "explain an error by the slug in its brackets",
    },
}

EVERYWHERE = (
    "Everywhere: --json --quiet -v --debug --color --ascii --plain --yes --no-input\n            --isolated"
)
"""The options of every command, as its help lists them."""
SYNONYMS = {
    "resume": "continue", "restart": "continue", "requeue": "continue",
    "train": "submit", "start": "submit", "launch": "submit",
    "stop": "cancel", "kill": "cancel", "abort": "cancel",
    "ls": "runs", "list": "runs", "ps": "runs", "jobs": "runs",
    "dryrun": "plan", "dry-run": "plan", "show": "plan", "compare": "diff",
    "validate": "check", "lint": "check", "prepare": "data prepare", "tokenize": "data prepare",
    "tail": "logs -f", "log": "logs", "top": "watch", "monitor": "watch", "follow": "watch",
    "upload": "publish", "push": "publish",
    "export": "convert", "new": "init run", "create": "init run", "ssh": "shell", "why": "diagnose",
    "lora": "init run", "sft": "init run", "qlora": "init run", "dpo": "init run", "grpo": "init run",
    "finetune": "init run", "pretrain": "init run", "example": "init run",
    "axolotl": "submit", "accelerate": "submit", "torchrun": "submit",
    "cost": "plan", "estimate": "plan", "predict": "plan", "price": "plan",
    "wandb": "sync", "loss": "metrics", "cluster": "clusters", "fetch": "stage", "download": "stage",
}  # fmt: skip
"""What people type who come from elsewhere -> what it is called here."""
OPTION_SYNONYMS = {"--dry-run": "plan", "--dryrun": "plan", "--test-only": "plan"}
"""An option that is a command here."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

PLUGIN_COMMANDS = {"demo": "local", "convert": "local", "publish": "local", "data": "local"}
"""Commands of our own plugins, with the extra that brings each.

Core names no other plugin's commands: `hpctrain --help` lists these four to a user who has core alone, where
no entry point can be read, and calling one says what to install.
"""


def help_text() -> str:
    """The text of `hpctrain --help`, written to help.txt with every build."""
    lines = [
        "hpctrain: train language models on other people's supercomputers",
        "",
        "  hpctrain demo                          a first run on this computer",
        "  hpctrain submit run.toml --on alps     the same run file on a cluster",
        "",
    ]
    for group, commands in GROUPS.items():
        lines += [group, *(f"  {name:<11} {line}" for name, line in commands.items()), ""]
    lines += [
        EVERYWHERE,
        "Exit codes: 0 ok, 1 our bug, 2 config or usage, 3 plugin, 4 step, 5 submission,",
        "            6 not reachable, 7 integrity, 8 the job ended badly, 130 interrupted",
        "`hpctrain COMMAND --help` describes a command, `hpctrain help SLUG` an error.",
    ]
    return "\n".join(lines) + "\n"
