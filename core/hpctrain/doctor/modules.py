"""Modules: each is loaded as a job does it, in order; what they set, and the files that lie behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from hpctrain.doctor.question import MOST, Answer, Finding, Question, Verdict, first_line
from hpctrain.doctor.site import Site
from hpctrain.model.layer import Module
from hpctrain.model.network import TrainingVar
from hpctrain.model.plan import Binding
from hpctrain.model.words import template
from hpctrain.render.shell import name, quoted, word

AREA = "modules"
SECONDS = 15
MARK = "@hpctrain"
"""In front of what the script says itself: a site's modules print as they like."""
EFFECTS = """\
declare -A was
changed() {
  local name value before
  while read -r name; do
    case $name in
      _* | LMOD_* | LOADEDMODULES | MODULEPATH* | SHLVL | PWD | OLDPWD) continue ;;
      *TOKEN* | *KEY* | *SECRET* | *PASS* | *CREDENTIAL* | *COOKIE* | *AUTH*) continue ;;
    esac
    value=${!name-} before=${was[$name]-}
    [[ $value != "$before" && $value != *$'\\n'* ]] || continue
    was[$name]=$value
    [[ ${1-} ]] || continue
    case $value in
      ?*":$before") echo "@hpctrain effect $1 prepend $name ${value%":$before"}" ;;
      *) echo "@hpctrain effect $1 set $name $value" ;;
    esac
  done < <(compgen -e)
}
changed
echo "@hpctrain loaded first ${LMOD_SYSTEM_DEFAULT_MODULES:-${LOADEDMODULES-}}"
"""
"""What each module changed, for a capture: no line judges it."""
_NOWHERE = Binding(roots={}, user="", account="", python="")


def questions(site: Site) -> Iterator[Question]:
    """The modules of builds, then those of training on several nodes with what they bring."""
    cluster = site.cluster
    modules, network = cluster.modules, cluster.network
    build = modules.build if modules else ()
    run = modules.run if modules else ()
    earlier: set[str] = set()
    places = [
        (f"place {place.name}", place.modules, place.source) for place in cluster.place if place.modules
    ]
    source = modules.source if modules else network.source
    for use, names, said_by in [
        *places,
        ("builds", build, source),
        ("training", (*run, *network.modules), source),
    ]:
        fresh = tuple(entry for entry in names if entry not in earlier)
        earlier.update(names)
        is_last = use == "training"
        if fresh or (is_last and named_paths(site)):
            yield _stack(site, use, names, fresh, said_by, brought=is_last)


def _stack(
    site: Site, use: str, names: Sequence[str], fresh: Sequence[str], source: str, *, brought: bool
) -> Question:
    """One shell that loads these modules; a line for each of those that no earlier one had."""
    defaults = _defaults(site) if brought else ()
    paths = named_paths(site) if brought else ()
    script = [f"command -v module >/dev/null || {{ echo '{MARK} none'; exit; }}"] if names else []
    script += [EFFECTS] if names else []
    script += [_loaded(number, entry) for number, entry in enumerate(names)]
    script += [f'echo "{MARK} loaded last ${{LOADEDMODULES-}}"'] if names else []
    script += [f'echo "{MARK} set {var.name} ${{{name(var.name)}-}}"' for var in defaults]
    script += [
        f'[ -e {word(template(path), _NOWHERE)} ]; echo "{MARK} path {number} $?"'
        for number, path in enumerate(paths)
    ]
    order = {entry: number for number, entry in enumerate(names)}

    def judge(answer: Answer) -> Iterator[Finding]:
        rows = [
            line[len(MARK) :].split(" ", 3)[1:] for line in answer.out.splitlines() if line.startswith(MARK)
        ]
        if ["none"] in rows:
            yield question.finding(Verdict.SILENT, "no command `module` in a login shell", question.todo)
            return
        results = {int(row[1]): row[2] for row in rows if row[0] == "module" and len(row) > 2}
        values = {row[1]: " ".join(row[2:]) for row in rows if row[0] == "set"}
        files = {int(row[1]): row[2] == "0" for row in rows if row[0] == "path" and len(row) > 2}
        if names and len(results) < len(names):
            return
        for entry in fresh:
            yield _of_module(site, use, entry, results[order[entry]], source, answer.err)
        for var in defaults:
            yield from _of_default(var, values.get(var.name, ""))
        for number, path in enumerate(paths):
            yield _of_path(site, path, is_there=files.get(number, False))

    question = Question(
        name=f"modules of {use}",
        area=AREA,
        fact=f"modules of {use}",
        argv=("bash", "-lc", "\n".join(script)),
        judge=judge,
        expected=" ".join(names),
        source=source,
        seconds=SECONDS,
        hangs="module",
        todo="in a login shell by hand: module load " + " ".join(names),
    )
    return question


def _loaded(number: int, text: str) -> str:
    """Change the modules, and say whether they are as they should be: not every `module` has an exit code."""
    entry = Module.parse(text)
    change = f"module {entry.action}" + (f" {quoted(entry.name)}" if entry.name else "")
    done = f"{change} >/dev/null; code=$?"
    if entry.action != "load":
        return f'{done}; echo "{MARK} module {number} $code"; changed'
    inside = quoted(f":{entry.name}")
    return (
        f'{done}; case ":${{LOADEDMODULES-}}:" in *{inside}:*|*{inside}/*) code=0 ;; *) code=1 ;; esac; '
        f'echo "{MARK} module {number} $code"; changed {number}'
    )


def _of_module(site: Site, use: str, entry: str, code: str, source: str, err: str) -> Finding:
    line = Finding(
        area=AREA,
        fact=f"module {entry} of {use}",
        verdict=Verdict.OK,
        expected="works",
        found="works",
        source=source,
    )
    if code == "0":
        return line
    bare = Module.parse(entry).name
    reason = next((line.strip() for line in err.splitlines() if bare and bare in line), first_line(err))
    if site.is_like_nodes:
        verdict, todo = (
            Verdict.DIFFERS,
            f"module avail {bare.partition('/')[0]}; then mend [modules] of the facts",
        )
    else:
        verdict = Verdict.UNKNOWN
        todo = f"these are modules of {site.cluster.arch} nodes: in a job, module load {bare}"
    return attrs.evolve(line, verdict=verdict, found=f"does not: {reason}"[:MOST], todo=todo)


def _defaults(site: Site) -> tuple[TrainingVar, ...]:
    """Variables that only count where no module sets them."""
    return tuple(var for var in site.cluster.network.var if var.how == "default" and not var.unless)


def _of_default(var: TrainingVar, value: str) -> Iterator[Finding]:
    """A module's own value wins: worth a line where it is another one."""
    if value and "$" not in var.value:
        is_equal = value == var.value
        yield Finding(
            area=AREA,
            fact=f"{var.name}, which a module sets",
            verdict=Verdict.OK if is_equal else Verdict.DIFFERS,
            expected=var.value,
            found=value,
            source=var.source,
            todo="" if is_equal else f"the module's value is used; set {var.name} in [env] to have the other",
        )


def named_paths(site: Site) -> tuple[str, ...]:
    """Folders and files that variables of training name, and those that it binds into a container.

    One with a variable is made by the job.
    """
    values = (var.value for var in site.cluster.var if var.value.startswith("/"))
    binds = (bind.partition(":")[0] for bind in site.cluster.network.binds)
    return (*(value for value in values if ":" not in value and "$" not in value), *binds)


def _of_path(site: Site, path: str, *, is_there: bool) -> Finding:
    verdict = Verdict.OK if is_there else Verdict.DIFFERS if site.is_like_nodes else Verdict.UNKNOWN
    return Finding(
        area=AREA,
        fact=f"{path}",
        verdict=verdict,
        expected="is there",
        found="is there" if is_there else "is not here",
        source=site.cluster.network.source,
        todo="" if is_there else f"in a job, with the modules of training: ls -d {path}",
    )
