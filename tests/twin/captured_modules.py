"""Module files of a capture: which names loaded, what each changed, what rows of `[[verify]]` showed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from hpctrain.doctor.modules import MARK
from hpctrain.doctor.question import Answer
from hpctrain.model import layer
from tests.twin.plain import is_module, is_variable
from tests.twin.site_file import Module

_SHOWN = re.compile(r"^(setenv|prepend_path)\(\"(\w+)\",\s*\"(.*)\"\)", re.MULTILINE)
_FILE = re.compile(r"^\s*/\S*?/modulefiles/(\S+?)(?:\.lua)?:$", re.MULTILINE)
_LISTED = re.compile(r"^[\w.+-]+(?:/[\w.+-]+)*$", re.MULTILINE)
_LOADS = re.compile(r"module (?:load|show|is-avail) ([\w./+\s-]+?)(?= 2>&1| &&|\Z)")
_ASSIGNED = re.compile(r"^([A-Z]\w*)=(.*)$", re.MULTILINE)

Answers = Mapping[str, Answer]


@attrs.frozen(kw_only=True)
class Modules:
    """The tree, and what every shell has loaded."""

    system: tuple[str, ...]
    files: tuple[Module, ...]

    @classmethod
    def of(cls, answers: Answers, expected: Mapping[str, str]) -> Modules:
        """`expected`: question -> the modules that it loads, in their order."""
        system: list[str] = []
        files: dict[str, Module] = {}
        for name, answer in answers.items():
            if name.startswith("modules of "):
                first = _loaded(answer.out, "first")
                system = system or first
                last = _loaded(answer.out, "last")
                for module in _effects(answer.out, expected.get(name, "").split(), last):
                    earlier = files.get(module.name)
                    files[module.name] = module if earlier is None else _merged(earlier, module)
        for name in system:
            files.setdefault(name, Module(name=name))
        for name, answer in answers.items():
            if name.startswith("verify module ") and answer.code == 0:
                for module in _of_row(name.removeprefix("verify "), answer.out, [*files]):
                    earlier = files.get(module.name)
                    files[module.name] = module if earlier is None else _merged(earlier, module)
        plain = (_plain(module) for name, module in files.items() if is_module(name))
        return cls(system=tuple(filter(is_module, system)), files=tuple(plain))


def _plain(module: Module) -> Module:
    """With the variables that have a name of one."""
    changes, prefixes = (
        {name: value for name, value in table.items() if is_variable(name)}
        for table in (module.set, module.prepend)
    )
    return attrs.evolve(module, set=changes, prepend=prefixes)


def _loaded(out: str, when: str) -> list[str]:
    head = f"{MARK} loaded {when} "
    lines = [line.removeprefix(head) for line in out.splitlines() if line.startswith(head)]
    return [name for line in lines for name in line.split(":") if name]


def _full(name: str, names: list[str]) -> str:
    """A name with its version; of several the newest, which is what Lmod loads."""
    versions = [full for full in names if full == name or full.startswith(f"{name}/")]
    return max(versions, key=lambda full: [int(n) for n in re.findall(r"\d+", full)], default=name)


def _effects(out: str, entries: list[str], last: list[str]) -> Iterator[Module]:
    rows = [line.removeprefix(f"{MARK} ").split(" ", 4) for line in out.splitlines() if line.startswith(MARK)]
    codes = {int(row[1]): row[2] for row in rows if row[0] == "module"}
    for number, entry in enumerate(entries):
        module = layer.Module.parse(entry)
        if module.action != "load" or codes.get(number) != "0":
            continue
        own = [row for row in rows if row[0] == "effect" and row[1] == str(number) and len(row) == 5]
        yield Module(
            name=_full(module.name, last),
            set={row[3]: row[4] for row in own if row[2] == "set" and not row[3].endswith("PATH")},
            prepend={row[3]: row[4] for row in own if row[2] == "prepend" or row[3].endswith("PATH")},
        )


def _of_row(command: str, out: str, names: list[str]) -> Iterator[Module]:
    """What a person's command shows of the modules that it names."""
    if " avail" in command:
        yield from (Module(name=name) for name in _LISTED.findall(out))
    match = _LOADS.search(command)
    words = match[1].split() if match else []
    if not words or (command.startswith("module is-avail") and "there" not in out):
        return
    yield from (Module(name=_full(word, names)) for word in words[:-1])
    file = _FILE.search(out)
    full = file[1] if file else _full(words[-1], names)
    shown = _SHOWN.findall(out)
    assigned = dict(_ASSIGNED.findall(out)) if "| grep" in command and "env" in command else {}
    if printed := re.search(r"&& printenv (\w+)\Z", command):
        assigned = {printed[1]: out.strip()}
    yield Module(
        name=full,
        set={**assigned, **{name: value for verb, name, value in shown if verb == "setenv"}},
        prepend={name: value for verb, name, value in shown if verb == "prepend_path"},
    )


def _merged(first: Module, other: Module) -> Module:
    """What a row shows stands first, in its order."""
    changed = {*other.set, *other.prepend}
    return Module(
        name=first.name,
        set={**other.set, **{key: value for key, value in first.set.items() if key not in changed}},
        prepend={
            **other.prepend,
            **{key: value for key, value in first.prepend.items() if key not in changed},
        },
    )
