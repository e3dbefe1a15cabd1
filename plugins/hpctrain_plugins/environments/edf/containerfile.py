"""A Containerfile from the run's environment: the base, what Debian brings, then Python's packages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from hpctrain.plugin import Package, Word
from hpctrain_plugins.environments import pip
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec

IMAGE_FOLDER = "/hpctrain"
"""Where lists and your own code lie in the image while it is built."""
INSIDE = "/user-software"
"""Where a venv is made and later mounted: it does not survive a move."""
HAS = "has"
"""The list of what the base has."""
APT = ("apt-get", "install", "-y", "--no-install-recommends")
CONSTRAINT = f"{IMAGE_FOLDER}/constraint.txt"
"""The constraint file of the build."""
JOB = "job.zip"
SETTINGS = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # an image has one Python, and is built to be changed
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    **pip.PATIENT,
}


def text(
    spec: PackagesSpec,
    base: str,
    lists: Mapping[str, tuple[str, ...]],
    *,
    apt: tuple[str, ...] = (),
    pinned: bool = False,
    replaced: tuple[str, ...] = (),
    apart: bool = False,
) -> str:
    """The whole file. `pinned`: the lists are complete; `replaced`: what of the base may be replaced;
    `apart`: a venv at `INSIDE` is all that comes out, not the image."""
    python = f"{INSIDE}/bin/python" if apart else "python3"
    adds = bool(lists or spec.compile or spec.user_packages)
    where = {"PIP_INDEX_URL": spec.options.index_url, "PIP_FIND_LINKS": " ".join(spec.options.find_links)}
    lines = [
        f"FROM {base}{' AS made' if apart else ''}",
        _env(SETTINGS | {name: value for name, value in where.items() if value}),
        *((_run("apt-get", "update"), _run(*APT, *apt)) if apt else ()),
        *((_run("python3", "-m", "venv", "--system-site-packages", INSIDE),) if apart else ()),
        *(_judged(replaced) if adds else ()),
        *(_copy(name) for name in lists),
        *_installs(python, lists, pinned=pinned),
        *_compiled(python, spec, no_deps=("--no-deps",) if pinned else ()),
        *_install_user_packages(python, spec),
        *((f"FROM scratch\nCOPY --from=made {INSIDE} /",) if apart else ()),
    ]
    return "\n".join(lines) + "\n"


def inspecting(base: str) -> str:
    """One that lists what the base has, and comes out as that list alone."""
    # No word of a run file: this one line is read by a shell, for its redirection.
    list_command = (
        f"PYTHONPATH={IMAGE_FOLDER}/{JOB} python3 -m hpctrain_job.packages >{IMAGE_FOLDER}/{HAS}.txt"
    )
    return (
        f"FROM {base} AS made\nCOPY {JOB} {IMAGE_FOLDER}/{JOB}\n{_run('/bin/sh', '-c', list_command)}\n"
        f"FROM scratch\nCOPY --from=made {IMAGE_FOLDER}/{HAS}.txt /\n"
    )


def user_packages(spec: PackagesSpec) -> tuple[Package, ...]:
    """Your own code, and what is compiled from a folder or a repository, in this order."""
    compiled = (s.package for s in spec.compile if not s.version)
    return (*spec.user_packages, *compiled)


def _judged(replaced: tuple[str, ...]) -> Iterator[str]:
    """The proof that the base is the one of the list, and what pip keeps of it."""
    yield f"COPY {JOB} {IMAGE_FOLDER}/{JOB}"
    yield _copy(HAS)
    listed = f"{IMAGE_FOLDER}/{HAS}.txt"
    yield _run("env", f"PYTHONPATH={IMAGE_FOLDER}/{JOB}", *pip.judged(listed, CONSTRAINT, replaced))


def _installs(python: str, lists: Mapping[str, tuple[str, ...]], *, pinned: bool) -> Iterator[str]:
    """What the base lacks."""
    for name in lists:
        no_deps = ("--no-deps",) if pinned and name != "vendor" else ()
        yield _run(*pip.install(python, CONSTRAINT), *no_deps, "-r", f"{IMAGE_FOLDER}/{name}.txt")


def _compiled(python: str, spec: PackagesSpec, no_deps: tuple[str, ...]) -> Iterator[str]:
    """What is compiled must see the base's torch: in isolation pip would fetch another to build against."""
    for source in spec.compile:
        if source.version:
            if source.built.build:
                yield _run(*pip.install(python, CONSTRAINT), *source.built.build)
            begin = pip.install(python, CONSTRAINT, source.built.env)
            yield _run(*begin, "--no-build-isolation", *no_deps, f"{source.name}=={source.version}")


def _install_user_packages(python: str, spec: PackagesSpec) -> Iterator[str]:
    for number, _ in enumerate(user_packages(spec)):
        folder = f"{IMAGE_FOLDER}/src-{number}"
        yield f"COPY src-{number} {folder}"
        yield _run(*pip.install(python), "--no-deps", "--no-build-isolation", folder)


def _copy(name: str) -> str:
    return f"COPY {name}.txt {IMAGE_FOLDER}/{name}.txt"


def _env(values: Mapping[str, str]) -> str:
    return "ENV " + " ".join(f"{name}={json.dumps(value)}" for name, value in values.items())


def _run(*words: Word) -> str:
    """A line without a shell: no word of a run file is read by one."""
    return f"RUN {json.dumps(list(words))}"
