"""Read an EDF and build its root: the half of the stand-in that mounts. Started by edf.c as root.

usage: edf.py [sarus:]NAME UID GID FOLDER     the job's variables on stdin, words that end with NUL on stdout:
`r`oot, `w`orkdir, `e`nv NAME=VALUE, `u`nset NAME, or `x` and what is wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomllib  # type: ignore[import-not-found]

PLACE = Path("/run/edf")
"""Empty on every node; what is mounted here is seen by one task alone."""
HOOK = Path("/twin/edf-hook.json")
KINDS = {
    "base_environment": (str, list), "image": (str,), "workdir": (str,), "entrypoint": (bool,),
    "writable": (bool,), "mounts": (list,), "env": (dict,), "annotations": (dict,),
}  # fmt: skip
FLAGS = {"ro", "rw", "private", "rprivate", "sqsh"}
ALWAYS = ("/proc", "/sys", "/dev", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf")
VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-)?\}")
DEPTH = 10
STORE = "/capstor/scratch/cscs/{user}/.parallax_imagestore"
"""Of Sarus Suite, where its page has it."""


class Wrong(Exception):
    """What the user is told."""


class Caller:
    """Whose job it is: files are read with these rights."""

    def __init__(self, uid: int, gid: int, cwd: str, variables: dict[str, str]) -> None:
        self.uid, self.gid, self.cwd, self.variables = uid, gid, cwd, variables
        self.groups = os.getgrouplist(variables.get("USER", "nobody"), gid)

    @contextmanager
    def rights(self) -> Iterator[None]:
        """Act as the user."""
        before = os.getgroups()
        os.setgroups(self.groups)
        os.setegid(self.gid)
        os.seteuid(self.uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(before)

    def path(self, text: str) -> str:
        """A path of the file: absolute, or `./…` from the caller's folder."""
        if text.startswith("./"):
            return os.path.normpath(f"{self.cwd}/{text}")
        if not text.startswith("/"):
            raise Wrong(f"{text}: an absolute path or ./ is needed")
        return text

    def expand(self, value: Any) -> Any:
        """`${VAR}` in every string; `$$` is a dollar; a variable that is not set is an error."""
        if isinstance(value, str):
            return VARIABLE.sub(self._variable, value)
        if isinstance(value, list):
            return [self.expand(item) for item in value]
        if isinstance(value, dict):
            return {key: self.expand(item) for key, item in value.items()}
        return value

    def _variable(self, match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        if match[1] not in self.variables and not match[2]:
            raise Wrong(f"variable {match[1]} is not set (${{{match[1]}:-}} allows that)")
        return self.variables.get(match[1], "")

    def find(self, name: str) -> str:
        """The file behind a name or a path."""
        if name.startswith(("/", "./")):
            return self.path(name)
        home = self.variables.get("HOME", "/")
        folders = self.variables.get("EDF_PATH", f"{home}/.edf").split(":")
        for folder in folders:
            if os.path.exists(f"{folder}/{name}.toml"):  # noqa: PTH110
                return f"{folder}/{name}.toml"
        raise Wrong(f"no {name}.toml in {':'.join(folders)}")


def load(caller: Caller, name: str, depth: int = 0) -> dict[str, Any]:
    """The description with all that it inherits."""
    if depth > DEPTH:
        raise Wrong(f"base_environment: more than {DEPTH} levels")
    path = caller.find(name)
    try:
        own = caller.expand(tomllib.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise Wrong(f"{path}: {error}") from None
    for key, value in own.items():
        if key not in KINDS or not isinstance(value, KINDS[key]):
            raise Wrong(f"{path}: {key}: unknown, or of another type")
    bases = own.pop("base_environment", [])
    found: dict[str, Any] = {}
    for base in [bases] if isinstance(bases, str) else bases:
        merge(found, load(caller, base, depth + 1))
    merge(found, own)
    return found


def merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    """Mounts and variables are appended, everything else is replaced."""
    for key, value in above.items():
        if key == "mounts":
            below[key] = [*below.get(key, []), *value]
        elif isinstance(value, dict):
            below[key] = {**below.get(key, {}), **value}
        else:
            below[key] = value


def stored(caller: Caller, edf: dict[str, Any]) -> dict[str, Any]:
    """The description as Sarus Suite reads it: an image of its store, and what it refuses."""
    image = edf.get("image", "")
    if image.startswith(("/", "./")):
        raise Wrong(f"image {image!r}: Sarus Suite takes registry references alone")
    for line in edf.get("mounts", []):
        if ":" not in str(line):
            raise Wrong(f"mounts: {line}: the destination must be explicit")
        if "sqsh" in str(line).split(":")[-1]:
            raise Wrong(f"mounts: {line}: SquashFS mounts are not supported")
    store = STORE.format(user=caller.variables.get("USER", "nobody"))
    return {**edf, "image": f"{store}/{image.replace('/', '+')}.sqsh"}


def build(caller: Caller, edf: dict[str, Any]) -> Path:
    """The root with the image and all mounts."""
    image = edf.get("image", "")
    if "/" not in image or not image.startswith(("/", "./")):
        raise Wrong(f"image {image!r}: this stand-in has no registry, a SquashFS file is needed")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "edf", str(PLACE))
    root = PLACE / "root"
    unpack(caller, caller.path(image), root)
    if edf.get("writable", True):
        run("chown", "-R", f"{caller.uid}:{caller.gid}", str(root))
    else:
        run("mount", "--bind", str(root), str(root))  # so that it alone can become read-only below
    for path in ALWAYS:
        bind(path, root, path, set())
    for line in edf.get("mounts", []):
        source, target, *flags = [*str(line).split(":"), ""][:3] if ":" in str(line) else [line, line]
        named = {flag for part in flags for flag in part.split("+") if flag}
        if named - FLAGS:
            raise Wrong(f"mounts: {line}: unknown flag {' '.join(sorted(named - FLAGS))}")
        mount(caller, caller.path(source), root, target, named)
    if not edf.get("writable", True):
        run("mount", "-o", "remount,bind,ro", str(root))
    return root


def mount(caller: Caller, source: str, root: Path, target: str, flags: set[str]) -> None:
    """One line of `mounts`, seen with the caller's rights."""
    with caller.rights():
        if not os.access(source, os.R_OK, effective_ids=True):
            raise Wrong(f"mounts: {source}: no such file, or not yours to read")
    if "sqsh" in flags:
        unpack(caller, source, PLACE / "sqsh" / target.strip("/").replace("/", "-"))
        source = str(PLACE / "sqsh" / target.strip("/").replace("/", "-"))
    bind(source, root, target, flags)


def unpack(caller: Caller, image: str, into: Path) -> None:
    """The content of a SquashFS file; in memory, since the images of tests are small."""
    with caller.rights():
        if not os.access(image, os.R_OK, effective_ids=True):
            raise Wrong(f"{image}: no such file, or not yours to read")
    into.parent.mkdir(parents=True, exist_ok=True)
    run("unsquashfs", "-q", "-n", "-d", str(into), image)


def bind(source: str, root: Path, target: str, flags: set[str]) -> None:
    """`source` at `target` below the root."""
    at = root / target.lstrip("/")
    if root not in Path(os.path.realpath(at)).parents:
        raise Wrong(f"mounts: {target} leaves the image")
    if Path(source).is_dir():
        at.mkdir(parents=True, exist_ok=True)
    else:
        at.parent.mkdir(parents=True, exist_ok=True)
        at.touch()
    run("mount", "--rbind", source, str(at))
    if "ro" in flags:
        run("mount", "-o", "remount,bind,ro", str(at))


def run(*argv: str) -> None:
    """A command that must end well."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Wrong(f"{argv[0]}: {done.stderr.strip()[-300:]}")


def flat(table: dict[str, Any], before: str = "") -> dict[str, str]:
    """Annotations by their dotted names; a quoted name with dots is another document."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        elif isinstance(value, str):
            found[f"{before}{key}" if "." not in key else f'{before}"{key}"'] = value
        else:
            raise Wrong(f"annotations: {before}{key} must be a string")
    return found


def answers(caller: Caller, edf: dict[str, Any]) -> Iterator[str]:
    """What the plugin is told once the root stands."""
    annotations = flat(edf.get("annotations", {}))
    if annotations.get("com.hooks.aws_ofi_nccl.enabled") == "true":
        for name, value in json.loads(HOOK.read_text()).items():
            yield f"e{name}={value}"
    for name, value in edf.get("env", {}).items():
        if not isinstance(value, str):
            raise Wrong(f"env: {name} must be a string")
        yield f"e{name}={value}" if value else f"u{name}"
    yield f"w{edf.get('workdir') or '/'}"
    yield f"r{build(caller, edf)}"


def main() -> int:
    """Answer once."""
    os.umask(0o022)  # the job's own would hide the folders that mounts need
    name, uid, gid, cwd = sys.argv[1:]
    pairs = (word.partition("=") for word in sys.stdin.read().split("\0") if "=" in word)
    caller = Caller(int(uid), int(gid), cwd, {key: value for key, _, value in pairs})
    try:
        with caller.rights():
            edf = load(caller, name.removeprefix("sarus:"))
            if name.startswith("sarus:"):
                edf = stored(caller, edf)
        words = list(answers(caller, edf))
    except Wrong as error:
        words = [f"x{error}"]
    sys.stdout.write("".join(f"{word}\0" for word in words))
    return int(words[-1].startswith("x"))


if __name__ == "__main__":
    sys.exit(main())
