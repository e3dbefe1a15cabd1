"""`hpctrain init`: a run file, a plugin of any kind or a site file to start from."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hpctrain.cli.init import scaffold
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError, Problem
from hpctrain.model.names import is_name
from hpctrain.render.shell import quoted
from hpctrain.run.system import files

SCHEMA = "run.schema.json"
SCHEMA_LINE = f"#:schema ./{SCHEMA}\n"
"""Where editors with a TOML language server look for the keys."""


@click.group("init", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Write a file to start from: `init run`, `init plugin NAME`, `init site CLUSTER`."""
    if context.invoked_subcommand is None:
        raise ConfigError.of(
            "usage", "init writes one of: run, plugin, site; none is named", hint="hpctrain init run"
        )


@command.command("run")
@click.option("--trainer", metavar="NAME", help="an installed trainer; trl without it")
@click.option("--example", metavar="NAME", help="one of the examples of the installed clusters, by its name")
@click.option("--on", "cluster", metavar="CLUSTER", help="the cluster; without it, this one or local")
@click.option("-o", "--out", "target", type=click.Path(path_type=Path), default=Path("run.toml"))
@click.pass_obj
def run(out: Out, trainer: str | None, example: str | None, cluster: str | None, target: Path) -> None:
    """Write a run file with every key that most runs need, each with a word on what it means.

    With a trainer that has no such file, an example of it, beside the files that it reads.
    """
    if example and trainer:
        raise ConfigError.of(
            "usage", "--example names its trainer", hint=f"hpctrain init run --example {example}"
        )
    if example or (trainer and trainer not in scaffold.trainers()):
        if not _write_example(out, example or "", trainer or "", cluster, target):
            return
    else:
        text = scaffold.run_file(trainer or "trl", cluster or _local_cluster())
        if not write(out, target, SCHEMA_LINE + text):
            return
    _write_schema(out, target)
    out.next(f"hpctrain plan {quoted(str(target))}")


def _write_example(out: Out, title: str, trainer: str, cluster: str | None, target: Path) -> bool:
    """A shipped run file, and what it reads beside it; a file that is there stays. False: declined."""
    from hpctrain.cli.shared.examples import example_named, example_of

    here = cluster or _local_cluster()
    example = example_named(title) if title else example_of(trainer, here)
    if not write(out, target, SCHEMA_LINE + example.text(cluster or "")):
        return False
    for source, below in example.companions():
        companion = target.parent / below
        if companion.exists():
            out.say(f"{companion} exists and stays")
            continue
        files.make_folder(companion.parent)
        files.write(companion, source.read_bytes())
        out.lines([str(companion)])
    origin = f"the example {example.title}"
    out.say(f"{origin}, for {cluster}" if cluster and cluster != example.cluster else origin)
    return True


def _write_schema(out: Out, target: Path) -> None:
    """What the first line of the run file names, so that an editor completes and checks the keys."""
    from hpctrain.cli.shared.schema_text import schema_text

    path = target.parent / SCHEMA
    files.write(path, schema_text(out))
    out.say(f"wrote {path}   for editors that check TOML")


@command.command("plugin")
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(scaffold.KINDS), default="cluster", help="what it is; a cluster without it"
)
@click.option(
    "--like", metavar="CLUSTER", help="of a cluster: whose places and queues to start from; local without it"
)
@click.option(
    "--from",
    "outputs",
    metavar="PATH",
    multiple=True,
    type=click.Path(path_type=Path),
    help="of a cluster: files, or a folder of them, with what its programs print, to fill facts from",
)
@click.option("-o", "--out", "target", type=click.Path(path_type=Path), help="a new folder")
@click.pass_obj
def plugin(
    out: Out, name: str, kind: str, like: str | None, outputs: tuple[Path, ...], target: Path | None
) -> None:
    """Write a distribution with a plugin of your own, and the conformance kit as its test.

    A cluster is facts to fill in; any other kind is a small plugin that works, to be changed.
    """
    if not (is_name(name) and name.isidentifier() and name.islower()):
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789") or "lumi"
        chosen = "" if kind == "cluster" else f" --kind {kind}"
        raise ConfigError.of(
            "wrong-value",
            f"{name!r} is not a plain lower-case name that Python can import",
            hint=f"hpctrain init plugin {plain}{chosen}",
        )
    if (like or outputs) and kind != "cluster":
        message = f"--{'like' if like else 'from'} tells of a cluster, and {name} is to be of the kind {kind}"
        raise ConfigError.of("usage", message, hint=f"hpctrain init plugin {name} --kind {kind}")
    if like and outputs:
        message = "facts begin as those of another cluster, or from outputs; not both"
        raise ConfigError.of("usage", message, hint=f"hpctrain init plugin {name} --from {outputs[0]}")
    folder = target or Path(f"hpctrain-{name}")
    if folder.exists():
        raise ConfigError.of("exists", f"{folder} exists", hint=f"-o {folder}-2")
    written = _cluster(out, name, like or "local", outputs) if kind == "cluster" else None
    written = written or scaffold.technology(kind, name)
    for path, text in written.items():
        files.make_folder((folder / path).parent)
        files.write(folder / path, text)
    out.lines([str(folder / path) for path in written])
    out.next(f"cd {folder} && pip install -e '.[test]' && pytest -q")


def _cluster(out: Out, name: str, like: str, paths: tuple[Path, ...]) -> dict[str, str]:
    """The files of a cluster, its facts from outputs where there are any."""
    if not paths:
        return scaffold.plugin(name, scaffold.facts_like(name, like))
    from hpctrain.cli.init.printed_facts import cluster_toml, read

    printed = read(paths)
    out.warn(
        Problem(code="unknown-output", message=f"nothing was read in {file}", fatal=False)
        for file in printed.unread
    )
    return scaffold.plugin(name, cluster_toml(name, printed))


@command.command("site")
@click.argument("cluster")
@click.option(
    "-o", "--out", "target", type=click.Path(path_type=Path), help="usually /etc/hpctrain/CLUSTER.toml"
)
@click.pass_obj
def site(out: Out, cluster: str, target: Path | None) -> None:
    """Write a site file: facts and policy of CLUSTER that its users cannot loosen."""
    write(out, target or Path(f"{cluster}.toml"), scaffold.site_file(cluster))


def write(out: Out, target: Path, text: str) -> bool:
    """Write a new file; one that is there is left alone, unless the user agrees. False: left alone."""
    if target.exists() and not out.confirm(f"overwrite {target}?", default=False):
        return False
    files.write(target, text)
    out.lines([str(target)])
    out.say(f"wrote {target}   {len(text.splitlines())} lines")
    return True


def _local_cluster() -> str:
    from hpctrain.inputs import detected

    try:
        return detected()
    except HpctrainError:
        return "local"
