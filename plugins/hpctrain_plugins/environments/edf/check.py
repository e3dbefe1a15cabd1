"""What CSCS's engine would refuse when the job starts, said before it is queued."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.plugin import Problem, RunSpec
from hpctrain.toolbox import TOMLDecodeError, read_toml
from hpctrain_plugins.environments.edf import image_request
from hpctrain_plugins.environments.edf.options import Options

KINDS: dict[str, tuple[type, ...]] = {
    "base_environment": (str, list),
    "image": (str,),
    "workdir": (str,),
    "entrypoint": (bool,),
    "writable": (bool,),
    "mounts": (list,),
    "env": (dict,),
    "annotations": (dict,),
}
FLAGS = {"ro", "rw", "private", "rprivate", "sqsh"}
USUAL = {"HOME", "USER", "LOGNAME", "SCRATCH", "STORE", "PROJECT", "CLUSTER_NAME"}
"""Variables that a job at CSCS has."""
DOLLAR = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-)?\}|\$")
COLON = re.compile(r":(?!-?\})")
"""Between the parts of a mount; the colon of `${NAME:-}` is none."""
WHERE = "environment.edf"


def problems(run: RunSpec) -> Iterator[Problem]:
    """All at once, for the options and for a description of the user's own."""
    options = image_request.of(run)
    known_variables = USUAL | set(options.variables)
    if options.edf:
        yield from _described(run.texts.get(options.edf, ""), options.edf, known_variables)
        return
    for mount in options.mounts:
        yield from _string(mount, f"{WHERE}.mounts", known_variables)
        yield from _mount(mount, f"{WHERE}.mounts")
    if options.kind == "venv" and (options.containerfile or options.apt):
        yield Problem(
            code="edf",
            message="a venv holds Python packages alone, and the base stays as it is",
            where=f"{WHERE}.{'containerfile' if options.containerfile else 'apt'}",
            hint='kind = "image"',
        )
    if options.engine == "sarus":
        yield from _for_sarus(options)
    if options.image and options.containerfile:
        yield Problem(
            code="two-images",
            message=f"{options.image} is entered as it is: nothing is built from {options.containerfile}",
            where=f"{WHERE}.image",
            hint="keep image, or keep containerfile",
        )


def _for_sarus(options: Options) -> Iterator[Problem]:
    """What Sarus Suite cannot do yet."""
    if options.kind == "venv":
        message = "Sarus Suite mounts no SquashFS file: packages are part of the image"
        yield Problem(code="edf", message=message, where=f"{WHERE}.kind", hint='kind = "image"')
    if options.image.startswith(("/", ".")):
        message = f"Sarus Suite enters images by their names, and {options.image} is a file"
        hint = 'base = "nvcr.io/nvidia/pytorch:25.06-py3"      or engine = "enroot"'
        yield Problem(code="edf", message=message, where=f"{WHERE}.image", hint=hint)
    for mount in options.mounts:
        if len(COLON.split(mount)) < 2 or "sqsh" in COLON.split(mount)[-1].split("+"):
            message = f"{mount}: Sarus Suite wants SOURCE:TARGET, and mounts no SquashFS file"
            yield Problem(code="edf-mount", message=message, where=f"{WHERE}.mounts", hint=f"{mount}:{mount}")


def _described(text: str, file: str, known_variables: set[str]) -> Iterator[Problem]:
    try:
        table = read_toml(text)
    except TOMLDecodeError as error:
        yield Problem(code="edf", message=f"{file}: {error}", where=f"{WHERE}.edf")
        return
    for key, value in table.items():
        if key not in KINDS:
            yield _wrong(file, f"{key} is not a key of a description", f"known: {', '.join(sorted(KINDS))}")
        elif not isinstance(value, KINDS[key]):
            types = " or ".join(kind.__name__ for kind in KINDS[key])
            yield _wrong(file, f"{key} is of another type than {types}")
    for name, value in _strings(table):
        if isinstance(value, str):
            yield from (_at(file, problem, name) for problem in _string(value, name, known_variables))
        elif name.startswith(("env.", "annotations.")):
            yield _wrong(file, f"{name} is {value!r}; the engine takes strings alone", f'{name} = "{value}"')
    for mount in table.get("mounts", ()) if isinstance(table.get("mounts"), list) else ():
        yield from (_at(file, problem, "mounts") for problem in _mount(str(mount), "mounts"))


def _string(text: str, where: str, known_variables: set[str]) -> Iterator[Problem]:
    for match in DOLLAR.finditer(text):
        if match[0] == "$":
            yield Problem(
                code="edf-variable",
                message=f"{text}: the engine knows ${{NAME}} with braces alone, and $$ for a dollar",
                where=where,
            )
        elif (
            match[1] and not match[2] and match[1] not in known_variables and not match[1].startswith("HPC_")
        ):
            yield Problem(
                code="edf-variable",
                message=f"{text}: the engine refuses a variable that is not set, and nothing sets {match[1]}",
                where=where,
                hint=f'${{{match[1]}:-}}      or, where your login sets it: variables = ["{match[1]}"]',
            )


def _mount(text: str, where: str) -> Iterator[Problem]:
    parts = COLON.split(text)
    flags = set("+".join(parts[2:]).split("+")) - {""} if len(parts) > 2 else set()
    if len(parts) > 3 or flags - FLAGS:
        yield Problem(
            code="edf-mount",
            message=f"{text} is not SOURCE:TARGET[:FLAG+FLAG]",
            where=where,
            notes=(f"flags: {', '.join(sorted(FLAGS))}",),
        )
    elif not parts[0].startswith(("/", "./", "${")):
        yield Problem(
            code="edf-mount", message=f"{text}: a source begins with / or ./", where=where, hint=f"./{text}"
        )


def _strings(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, name)
    else:
        yield name, value


def _at(file: str, problem: Problem, name: str) -> Problem:
    return Problem(
        code=problem.code,
        message=f"{file}: {name}: {problem.message}",
        where=f"{WHERE}.edf",
        hint=problem.hint,
        notes=problem.notes,
    )


def _wrong(file: str, message: str, hint: str = "") -> Problem:
    return Problem(code="edf", message=f"{file}: {message}", where=f"{WHERE}.edf", hint=hint)
