"""`hpctrain init`: a run file, a cluster plugin or a site file to start from."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hpctrain.cli import scaffold
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.hooks.scan import names
from hpctrain.model.names import is_name
from hpctrain.run import files


@click.group("init", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Write a file to start from: `init run`, `init plugin NAME`, `init site CLUSTER`."""
    if context.invoked_subcommand is None:
        raise ConfigError.of(
            "usage", "init writes one of: run, plugin, site; none is named", hint="hpctrain init run"
        )


@command.command("run")
@click.option("--trainer", type=click.Choice(["trl", "command"]), default="trl", show_default=True)
@click.option("--on", "cluster", metavar="CLUSTER", help="the cluster; without it, this one or local")
@click.option("-o", "--out", "target", type=click.Path(path_type=Path), default=Path("run.toml"))
@click.pass_obj
def run(out: Out, trainer: str, cluster: str | None, target: Path) -> None:
    """Write a run file with every key that most runs need, each with a word on what it means."""
    chosen = cluster or _here()
    write(out, target, scaffold.run_file(trainer, chosen))
    out.next(f"hpctrain plan {target}")


@command.command("plugin")
@click.argument("name")
@click.option("--like", metavar="CLUSTER", default="local", help="whose places and queues to begin with")
@click.option("-o", "--out", "target", type=click.Path(path_type=Path), help="a new folder")
@click.pass_obj
def plugin(out: Out, name: str, like: str, target: Path | None) -> None:
    """Write a distribution for a cluster of your own: facts to fill in, hooks, the kit as its test."""
    if not (is_name(name) and name.isidentifier() and name.islower()):
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789") or "lumi"
        raise ConfigError.of(
            "wrong-value",
            f"{name!r} is no plain lower-case name that Python can import",
            hint=f"hpctrain init plugin {plain}",
        )
    folder = target or Path(f"hpctrain-{name}")
    if folder.exists():
        raise ConfigError.of("exists", f"{folder} exists", hint=f"-o {folder}-2")
    for path, text in scaffold.plugin(name, like).items():
        files.make_folder((folder / path).parent)
        files.write(folder / path, text)
    out.lines([str(folder / path) for path in scaffold.plugin(name, like)])
    out.next(f"cd {folder} && pip install -e '.[test]' && pytest -q")


@command.command("site")
@click.argument("cluster")
@click.option(
    "-o", "--out", "target", type=click.Path(path_type=Path), help="as a rule /etc/hpctrain/CLUSTER.toml"
)
@click.pass_obj
def site(out: Out, cluster: str, target: Path | None) -> None:
    """Write a site file: facts and policy of CLUSTER that its users cannot loosen."""
    write(out, target or Path(f"{cluster}.toml"), scaffold.site_file(cluster))


def write(out: Out, target: Path, text: str) -> None:
    """Write a new file; one that is there is left alone, unless the user agrees."""
    if target.exists() and not out.confirm(f"overwrite {target}?", default=False):
        return
    files.write(target, text)
    out.lines([str(target)])
    out.say(f"wrote {target}   {len(text.splitlines())} lines")


def _here() -> str:
    from hpctrain.session import detected

    try:
        return detected()
    except HpctrainError:
        return "local" if "local" in names("clusters") else "frontier"
