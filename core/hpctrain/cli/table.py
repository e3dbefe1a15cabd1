"""Every command: its group, its line of help. The module of the same name is imported when called."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "Begin": {
        "demo": "train a small model on this computer, from nothing, in minutes",
        "init": "write a run file, a plugin or a site file to start from",
        "clusters": "the clusters that are installed, their facts and sources",
        "check": "say everything that is wrong with a run file",
    },
    "Run": {
        "plan": "show what would happen, where, and who decided it",
        "diff": "the same run on several clusters, side by side",
        "lock": "pin every moving name: versions, revisions, digests",
        "build": "only the environment of a run",
        "stage": "only its models, datasets and code",
        "submit": "build what is missing, then submit the jobs",
        "continue": "go on with a run that waits for this node",
        "eject": "write plain scripts that run without hpctrain",
    },
    "On a compute node": {
        "exec": "one command in the run's environment",
        "tunnel": "an editor on a compute node",
        "run": "the run inside an allocation that you hold already",
        "shell": "a shell in the run's environment",
    },
    "Watch": {
        "status": "one word for a run and each of its steps",
        "logs": "what a step printed",
        "diagnose": "why a run failed, and what mends it",
        "metrics": "loss, learning rate, tokens per second",
        "runs": "every run of yours",
        "cancel": "end a run",
        "sync": "send what a run logged for W&B without network",
    },
    "After": {
        "convert": "a checkpoint in another format, verified, without torch",
        "publish": "checkpoints as revisions on the hub, converted and compared",
        "data": "token files from a dataset: prepare, count, check, show, mix",
    },
    "Extend": {
        "plugins": "the plugins that are installed, and why one is unusable",
        "schema": "the JSON schema of the run file, for editors",
        "completion": "a completion script for bash, zsh or fish",
        "help": "explain an error by the slug in its brackets",
    },
}

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

PLUGIN_COMMANDS = {"demo": "local", "convert": "local", "publish": "local", "data": "local"}
"""Commands of our own plugins that everybody should know, with the extra that brings them."""


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
        "Everywhere: --json --quiet -v --debug --color --ascii --plain --yes --no-input",
        "Exit codes: 0 ok, 1 our bug, 2 config or usage, 3 plugin, 4 step, 5 submission,",
        "            6 not reachable, 7 integrity, 8 the job ended badly, 130 interrupted",
        "`hpctrain COMMAND --help` says more; `hpctrain help SLUG` explains an error.",
    ]
    return "\n".join(lines) + "\n"
