"""A stand-in for conda's command line, over py-rattler: it solves, downloads and links for real.

What it has: create, install, list, info, run, env list, activate and deactivate. Anything else is
refused by name. `shell.posix` answers the shell function, as conda's own does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rattler import Channel, Client, PrefixRecord, RepoDataRecord

VERSION = "23.11.0"
ROOT = Path(os.environ.get("TWIN_CONDA_ROOT", "/opt/conda"))
ARCHIVES = (".tar.bz2", ".conda")
COMMANDS = "create install list info run env activate deactivate"


class CondaError(Exception):
    """What goes wrong, as conda says it."""


def main(argv: list[str]) -> int:
    """Do one command."""
    if argv[:1] == ["shell.posix"]:
        return _shell(argv[1:])
    if argv[:1] in (["--version"], ["-V"]):
        print(f"conda {VERSION}")
        return 0
    options, rest = _parser().parse_known_args(argv)
    if rest and options.command != "run":
        raise CondaError(f"this stand-in does not know {' '.join(rest)}")
    return int(options.run(options) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conda", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar=COMMANDS)
    for name, run in (("create", _create), ("install", _install), ("list", _list), ("info", _info),
                      ("run", _run), ("env", _env)):  # fmt: skip
        sub = commands.add_parser(name)
        sub.set_defaults(run=run)
        sub.add_argument("-p", "--prefix", type=Path)
        sub.add_argument("-n", "--name")
        sub.add_argument("--json", action="store_true")
        sub.add_argument("-q", "--quiet", action="store_true")
        if name in ("create", "install"):
            sub.add_argument("-y", "--yes", action="store_true")
            sub.add_argument("-d", "--dry-run", action="store_true")
            sub.add_argument("-c", "--channel", action="append", default=[])
            sub.add_argument("--override-channels", action="store_true")
            sub.add_argument("--offline", action="store_true")
            sub.add_argument("--download-only", action="store_true")
            sub.add_argument("specs", nargs="*")
        elif name == "info":
            sub.add_argument("--base", action="store_true")
            sub.add_argument("-e", "--envs", action="store_true")
        elif name == "run":
            sub.add_argument("--no-capture-output", "--live-stream", action="store_true")
            sub.add_argument("argv", nargs=argparse.REMAINDER)
        elif name == "env":
            sub.add_argument("what", choices=("list",))
    return parser


def _environments() -> Path:
    return Path.home() / ".conda/envs"


def _prefix(options: argparse.Namespace) -> Path:
    """The environment that a command is about."""
    if options.prefix:
        return Path(options.prefix).expanduser().absolute()
    if options.name:
        return _environments() / str(options.name)
    return Path(os.environ.get("CONDA_PREFIX") or ROOT)


def _create(options: argparse.Namespace) -> None:
    prefix = _prefix(options)
    if not (options.prefix or options.name):
        raise CondaError("one of the arguments -n/--name -p/--prefix is required")
    if (prefix / "conda-meta").exists() and not options.yes:
        raise CondaError(f"a conda environment exists at {prefix}; -y replaces it")
    asyncio.run(_change(options, prefix, options.specs, keep=False))
    print(f"#\n# To activate this environment, use\n#\n#     $ conda activate {prefix}\n#")


def _install(options: argparse.Namespace) -> None:
    prefix = _prefix(options)
    if not (prefix / "conda-meta").is_dir():
        raise CondaError(f"EnvironmentLocationNotFound: Not a conda environment: {prefix}")
    asyncio.run(_change(options, prefix, options.specs, keep=True))


async def _change(options: argparse.Namespace, prefix: Path, specs: list[str], *, keep: bool) -> None:
    import rattler  # half a second that `conda activate` need not wait for

    old = [rattler.PrefixRecord.from_path(p) for p in sorted((prefix / "conda-meta").glob("*.json"))]
    packages = Path(os.environ.get("CONDA_PKGS_DIRS", "").split(",")[0] or Path.home() / ".conda/pkgs")
    packages.mkdir(parents=True, exist_ok=True)
    channels = [rattler.Channel(name) for name in options.channel or ("conda-forge",)]
    client = rattler.Client()
    try:
        if specs and all(spec.endswith(ARCHIVES) for spec in specs):
            records = [await rattler.RepoDataRecord.from_package_archive(spec) for spec in specs]
        else:
            records = await _solved(channels, specs, old if keep else [], packages, client)
        for record in sorted(records, key=lambda one: one.name.normalized):
            print(f"  {record.name.normalized:<20} {record.version!s:<12} {record.build}")
        if options.dry_run:
            return
        await _archives(records, packages, client)
        if not options.download_only:
            prefix.mkdir(parents=True, exist_ok=True)
            await rattler.install(
                records, target_prefix=prefix, cache_dir=packages, installed_packages=old,
                show_progress=False, client=client,
            )  # fmt: skip
            (prefix / "conda-meta/history").touch()
    except Exception as error:
        raise CondaError(_said(error, channels[0].base_url)) from None


async def _solved(
    channels: list[Channel], specs: list[str], old: list[PrefixRecord], packages: Path, client: Client
) -> list[RepoDataRecord]:
    """What is to be in the prefix."""
    import rattler

    found: list[RepoDataRecord] = await rattler.solve(
        channels,
        [
            *(rattler.MatchSpec(spec) for spec in specs),
            *(rattler.MatchSpec(one.name.normalized) for one in old),
        ],
        gateway=rattler.Gateway(cache_dir=packages / "cache", client=client),
        platforms=["linux-64", "noarch"],
        virtual_packages=rattler.VirtualPackage.detect(),
        locked_packages=old or None,
    )
    return found


async def _archives(records: list[RepoDataRecord], packages: Path, client: Client) -> None:
    """Keep the archives, as conda does."""
    from rattler.package_streaming import download_to_path

    for record in records:
        target = packages / record.file_name
        if not target.exists() and record.url.startswith("http"):
            await download_to_path(client, record.url, target.with_suffix(".part"))
            target.with_suffix(".part").replace(target)


def _said(error: Exception, url: str) -> str:
    """The library's error under the name that conda gives it."""
    text = str(error)
    if "No candidates were found" in text or "cannot be installed" in text or "unsatisfiable" in text:
        return (
            f"PackagesNotFoundError: The following packages are not available from current channels:\n{text}"
        )
    if any(word in text for word in ("error sending request", "dns error", "failed to fetch", "HTTP status")):
        return f"CondaHTTPError: HTTP 000 CONNECTION FAILED for url <{url}>\n{text}"
    return text


def _rows(prefix: Path) -> list[dict[str, str]]:
    read = (json.loads(p.read_text()) for p in sorted((prefix / "conda-meta").glob("*.json")))
    return [{key: str(row.get(key)) for key in ("name", "version", "build", "channel")} for row in read]


def _list(options: argparse.Namespace) -> None:
    prefix = _prefix(options)
    if not (prefix / "conda-meta").is_dir():
        raise CondaError(f"EnvironmentLocationNotFound: Not a conda environment: {prefix}")
    rows = _rows(prefix)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"# packages in environment at {prefix}:\n#")
        for row in rows:
            print(f"{row['name']:<24} {row['version']:<12} {row['build']:<16} {row['channel']}")


def _info(options: argparse.Namespace) -> None:
    if options.base:
        print(ROOT)
        return
    active = os.environ.get("CONDA_PREFIX")
    said = {"conda_version": VERSION, "root_prefix": str(ROOT), "active_prefix": active,
            "envs": _known(), "stand_in": True}  # fmt: skip
    if options.json:
        print(json.dumps(said, indent=2))
    elif options.envs:
        print("\n".join(_known()))
    else:
        print("\n".join(f"{name:>20} : {value}" for name, value in said.items()))


def _known() -> list[str]:
    return [str(ROOT), *(str(p) for p in sorted(_environments().glob("*")))]


def _env(options: argparse.Namespace) -> None:
    print("# conda environments:\n#\n" + "\n".join(_known()))


def _run(options: argparse.Namespace) -> None:
    line = "; ".join(_activation(str(_prefix(options)))) + f"; exec {shlex.join(options.argv)}"
    sys.stdout.flush()
    os.execv("/bin/bash", ("bash", "-c", line))


def _shell(argv: list[str]) -> int:
    """Print what the shell function evaluates."""
    if argv[:1] == ["activate"]:
        lines = _activation(argv[1] if len(argv) > 1 else str(ROOT))
    elif argv[:1] == ["deactivate"]:
        lines = _deactivation()
    elif argv[:1] == ["hook"]:
        lines = [(ROOT / "etc/profile.d/conda.sh").read_text()]
    else:
        raise CondaError(f"shell.posix does not know {' '.join(argv)}")
    print("\n".join(lines))
    return 0


def _activation(name: str) -> Iterable[str]:
    """Lines that make an environment the active one."""
    prefix = Path(name).expanduser().absolute() if "/" in name else _environments() / name
    prefix = ROOT if name == "base" else prefix
    if not (prefix / "conda-meta").is_dir():
        raise CondaError(f"EnvironmentLocationNotFound: Not a conda environment: {prefix}")
    level = int(os.environ.get("CONDA_SHLVL", "0"))
    before = os.environ.get("CONDA_PREFIX", "")
    path = [part for part in os.environ.get("PATH", "").split(":") if part != f"{before}/bin"]
    yield _export("PATH", ":".join([f"{prefix}/bin", *path]))
    if before:
        yield _export(f"CONDA_PREFIX_{level}", before)
    yield _export("CONDA_PREFIX", str(prefix))
    yield _export("CONDA_DEFAULT_ENV", str(prefix) if "/" in name else name)
    yield _export("CONDA_SHLVL", str(level + 1))
    yield from _scripts(prefix, "activate.d")


def _deactivation() -> Iterable[str]:
    """Lines that go back to what was active before."""
    level, active = int(os.environ.get("CONDA_SHLVL", "0")), os.environ.get("CONDA_PREFIX", "")
    if not level or not active:
        return
    yield from _scripts(Path(active), "deactivate.d")
    path = [part for part in os.environ.get("PATH", "").split(":") if part != f"{active}/bin"]
    before = os.environ.get(f"CONDA_PREFIX_{level - 1}", "")
    yield _export("PATH", ":".join([f"{before}/bin", *path] if before else path))
    yield _export("CONDA_SHLVL", str(level - 1))
    if before:
        yield _export("CONDA_PREFIX", before)
        yield _export("CONDA_DEFAULT_ENV", before)
        yield f"unset CONDA_PREFIX_{level - 1}"
    else:
        yield "unset CONDA_PREFIX CONDA_DEFAULT_ENV"


def _scripts(prefix: Path, folder: str) -> Iterable[str]:
    for script in sorted((prefix / "etc/conda" / folder).glob("*.sh")):
        yield f". {shlex.quote(str(script))}"


def _export(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except CondaError as error:
        print(f"\n{error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the library's threads do not survive the interpreter's own end
