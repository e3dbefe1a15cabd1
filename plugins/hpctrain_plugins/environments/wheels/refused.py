"""What an environment of wheels cannot take, as far as the run file shows: `check` says it before `lock`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.plugin import Cluster, Package, Problem, RunSpec, Span
from hpctrain.toolbox import NATIVE, scrub
from hpctrain_plugins.environments.wheels.packages_spec import name_of, requirement_lines

ADDRESS = r"@|://"
HASHES = r"\s--hash[= ].*"
FILE = "environment.requirements"
SCHEMES = ("http", "https", "file")


def problems(run: RunSpec, cluster: Cluster) -> list[Problem]:
    """Everything that `lock` would refuse for a prefix, whatever an index says."""
    return [*of_packages(run), *_python(run, cluster)]


def of_packages(run: RunSpec) -> Iterator[Problem]:
    """What `lock` would refuse in the packages and in where they come from, whatever an index says."""
    for line in requirement_lines(run):
        written = scrub(line.written)
        span = Span(file=run.environment.requirements, line=line.number, end=len(written) + 1, text=written)
        yield from _in_file(line.text, run.environment.use, span)
    for key in ("packages", "compile"):
        for number, package in enumerate(getattr(run.environment, key)):
            if re.search(ADDRESS, package.requirement):
                yield _address(package.requirement, f"environment.{key}[{number}]", None)
    yield from _indexes(run)


def _in_file(text: str, technology: str, span: Span) -> Iterator[Problem]:
    """A line of a requirements file: a name with its version, as pip writes them, and nothing else."""
    if text.startswith("-"):
        yield Problem(
            code="requirements-option",
            message=f"{re.split('[ =]', text)[0]} is an option of pip, not a requirement",
            where=FILE,
            hint=f'[environment.{technology}]\nindex_url = "https://…"      or find_links',
            span=span,
        )
    elif re.search(ADDRESS, text):
        yield _address(text, FILE, span)
    else:
        try:
            Package.parse(re.sub(HASHES, "", text))
        except ValueError as error:
            needed, *meant = error.args
            yield Problem(
                code="requirement",
                message=f"{text!r} is no requirement: {needed}",
                where=FILE,
                hint="".join(meant).strip('"'),
                span=span,
            )


def _address(text: str, where: str, span: Span | None) -> Problem:
    return Problem(
        code="requirement-address",
        message=f"{name_of(text)} is asked for by its address",
        where=where,
        hint=f'packages = [{{ name = "{name_of(text)}", git = "https://…", rev = "…" }}]',
        span=span,
    )


def _indexes(run: RunSpec) -> Iterator[Problem]:
    options, technology = run.environment.options, run.environment.use
    for key in ("index_url", "first_index"):
        address = getattr(options, key, "")
        if address and not _is_address(address):
            yield Problem(
                code="index-url",
                message=f"{address!r} is no address of a package index",
                where=f"environment.{technology}.{key}",
                hint=f'{key} = "https://mirror.example.org/simple"',
            )


def _is_address(text: str) -> bool:
    from urllib.parse import urlsplit  # most runs name no index

    try:
        parts = urlsplit(text)
        _ = parts.port  # out of range is said when somebody asks
    except ValueError:
        return False
    return parts.scheme in SCHEMES and bool(parts.netloc or parts.scheme == "file") and " " not in text


def _python(run: RunSpec, cluster: Cluster) -> Iterator[Problem]:
    """A program, not a version; and uv must know for which Python it resolves for another computer."""
    env = run.environment
    interpreter = getattr(env.options, "python", "")
    if re.fullmatch(r"[\d.]+", interpreter):
        yield Problem(
            code="python-version",
            message=f"{interpreter} is a version; this key names a program or its path",
            where=f"environment.{env.use}.python",
            hint=f'[environment]\npython = "{interpreter}"',
        )
    first = getattr(env.options, "first", ())
    is_fetched = getattr(env.options, "own_python", False) and not interpreter
    has_packages = env.requirements or env.compile or first or any(p.requirement for p in env.packages)
    if has_packages and not env.python and (is_fetched or cluster.arch != NATIVE):
        yield Problem(
            code="no-python",
            message=f"{cluster.name} needs to know the Python of the environment",
            where="environment.python",
            hint='[environment]\npython = "3.11"',
        )
