"""The command line: twin up|down|sh|fault|list|root."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from hpctrain.errors import HpctrainError
from tests.twin import captured, job_memory, rootfs, site_file
from tests.twin.faults import fault
from tests.twin.life import NoTwin, Twin, torch_python, twins


def main(argv: list[str]) -> int:
    """Do what is asked; a plain message and 1 when it cannot be done."""
    end = argv.index("--") if "--" in argv else len(argv)
    options = _parser().parse_args(argv[:end])
    options.argv = argv[end + 1 :]
    try:
        return int(options.run(options) or 0)
    except (NoTwin, rootfs.NoRoot, job_memory.Unmeasured, HpctrainError, AssertionError) as error:
        print(f"twin: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="twin", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: object, text: str, *words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text)
        sub.set_defaults(run=run)
        for word in words:
            sub.add_argument(word)
        return sub

    up = command("up", _up, "boot a twin")
    up.add_argument("name", nargs="?", default="", help="a site; with --from, how the twin is called")
    up.add_argument(
        "--from",
        dest="capture",
        type=Path,
        metavar="FILE",
        help="of a capture: hpctrain doctor --capture FILE",
    )
    up.add_argument(
        "--nodes-down", type=int, default=0, metavar="N", help="add N nodes that are powered down"
    )
    up.add_argument("--accounting", action="store_true", help="with Slurm's database, which takes seconds")
    command("down", _down, "end a twin", "name")
    sh = command("sh", _sh, "a shell on the login node, or `-- COMMAND`", "name")
    sh.add_argument("-u", "--user", default="alice", choices=("root", *site_file.USERS))
    sh.add_argument("-n", "--node", default="", help="on a compute node instead")
    lever = command("fault", _fault, "let something go wrong", "name", "fault")
    lever.add_argument("words", nargs="*")
    command("list", _list, "the twins there are, and which are up")
    command("root", _root, "build the root file system that all share, and measure what ranks take")
    return parser


def _up(options: argparse.Namespace) -> None:
    if reason := rootfs.missing():
        raise NoTwin(reason)
    if options.capture:
        cluster = captured.read(options.capture).cluster
        one = Twin(options.name or f"{cluster}-capture", cluster, options.capture)
    elif options.name in site_file.names():
        one = Twin(options.name)
    else:
        raise NoTwin(f"no such site: {options.name} (there are {' '.join(site_file.names())})")
    if not rootfs.path().exists():
        _root(options)
    began = time.monotonic()
    one.up(powered_down=options.nodes_down, accounting=options.accounting)
    print(f"{one.name} is up, {time.monotonic() - began:.1f} s; apptainer {rootfs.apptainer(rootfs.path())}")
    if options.capture:
        _compare(one, options.capture)


def _compare(twin: Twin, path: Path) -> None:
    """Ask the twin what the capture was asked, and say which answers are other ones."""
    from tests.twin.services import inside  # it imports life, as this does

    inside.ready(twin)
    first, again = captured.read(path).answers, captured.again(twin).answers
    others = captured.differing(first, again)
    print(f"of {len(first)} answers {len(first) - len(others)} are those of the capture")
    for name in others:
        print(f"  another one, or none: {name}")


def _down(options: argparse.Namespace) -> None:
    began = time.monotonic()
    twin = Twin(options.name)
    if not twin.alive():
        raise NoTwin(f"{options.name} is not up")
    twin.down()
    print(f"{options.name} is down, {time.monotonic() - began:.1f} s")


def _sh(options: argparse.Namespace) -> int:
    argv = options.argv or ["bash"]
    return subprocess.run(Twin(options.name).inside(argv, options.user, node=options.node)).returncode


def _fault(options: argparse.Namespace) -> None:
    fault(Twin(options.name), options.fault, *options.words)


def _list(options: argparse.Namespace) -> None:
    up = {twin.name for twin in twins()}
    for name in sorted({*site_file.names(), *up}):
        print(f"{name:<24} {'up' if name in up else '-'}")


def _root(options: argparse.Namespace) -> None:
    began = time.monotonic()
    root = rootfs.ensure()
    print(f"{root}, {time.monotonic() - began:.0f} s; apptainer {rootfs.apptainer(root)}")
    if python := torch_python():
        print(f"a training step takes {job_memory.step_mb(python)} MB here")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
