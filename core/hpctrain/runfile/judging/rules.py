"""What the types of a run cannot say: names, and tables of which one key of several is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from hpctrain.model.names import NAME_RULE, is_account, is_name, is_variable
from hpctrain.model.run import Asset, Code, Environment, Package, Resources, RunSpec, TrainSpec
from hpctrain.runfile.faults import Check, Fault, wrong_value
from hpctrain.runfile.judging.scalars import one_of
from hpctrain.runfile.judging.tokens import check_no_tokens, check_secrets
from hpctrain.runfile.keys import Keys, nearest

ONE_OF: Mapping[type, tuple[str, ...]] = {
    Asset: ("hub", "url", "git", "path", "command", "use"),
    Code: ("git", "path"),
    Package: ("requirement", "path", "git"),
}
"""Exactly one of these keys."""

_LITERAL = r"(?:^|:)(?:~/|\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})(?:[/:]|$))|^<[A-Za-z]+(?:[ _-]\w+)+>$"
"""What a shell replaces, or somebody who fills in `<your-key>`; a token of a model is one word: `<s>`."""

AT_MOST_ONE: Mapping[type, tuple[str, ...]] = {Resources: ("nodes", "gpus")}

_TABLES: Mapping[Keys, type] = {("resources",): Resources, ("assets", "*"): Asset, ("code",): Code}


def alternatives_at(path: Keys) -> frozenset[str]:
    """The keys of this table that exclude each other: a higher layer's replaces a lower one's."""
    cls = _TABLES.get(path) or _TABLES.get((*path[:-1], "*"))
    return frozenset() if cls is None else frozenset(ONE_OF.get(cls) or AT_MOST_ONE[cls])


def bad_name(text: str, *, at_key: bool = False) -> Fault:
    """The fault of a name that is none."""
    quoted = json.dumps(text, ensure_ascii=False)
    path = (text,) if at_key else ()
    return Fault(code="name", message=f"{quoted} is not a name", notes=(NAME_RULE,), path=path, at_key=at_key)


def check_name(text: str) -> Iterator[Fault]:
    if not is_name(text):
        yield bad_name(text)


def check_optional_name(text: str) -> Iterator[Fault]:
    if text and not is_name(text):
        yield bad_name(text)


def check_overlay(cluster: str, clusters: Collection[str]) -> Iterator[Fault]:
    """`[on.X]` of a cluster that nobody knows here: a slip of one is refused, another is a warning."""
    if not clusters or cluster in clusters:
        return
    near = next(iter(nearest(cluster, clusters, 0.8)), "")
    slip = bool(near) and (cluster[: len(near)] != near or cluster[len(near)].isalpha())  # not isambard3
    yield Fault(
        code="unknown-name",
        message=f"no cluster {json.dumps(cluster)} is installed",
        hint=near if slip else "",
        notes=() if slip else (f"only the keys of [on.{cluster}] are checked here",),
        path=("on", cluster),
        at_key=True,
        table=True,
        fatal=slip,
    )


def check_keys(table: Mapping[str, Any]) -> Iterator[Fault]:
    """A fault for each key that is not a plain name."""
    for key in table:
        if not is_name(key):
            yield bad_name(key, at_key=True)


def check_variables(table: Mapping[str, str]) -> Iterator[Fault]:
    """Keys that are names of environment variables."""
    for key in table:
        if not is_variable(key):
            quoted = json.dumps(key, ensure_ascii=False)
            message = f"{quoted} is not the name of an environment variable"
            yield Fault(code="name", message=message, path=(key,), at_key=True)


_PLACE = re.compile(r"\{(?:checkpoints|run|start|assets\.[\w.-]+)\}")
"""What the trainer `command` fills in."""


def check_env(table: Mapping[str, str]) -> Iterator[Fault]:
    """Names of variables, and no token among their values."""
    yield from check_variables(table)
    yield from check_no_tokens(table)


def literal_variables(table: Mapping[str, str]) -> Iterator[Fault]:
    """A warning for each value in which only a shell would replace something."""
    for key, value in table.items():
        if any(sign in value for sign in "~$<") and re.search(_LITERAL, value):
            yield Fault(
                code="env-literal",
                message=f"{key} will be {json.dumps(value, ensure_ascii=False)}, letter by letter",
                notes=("no shell reads [env]; in the command one can: bash -c 'export NAME=…; exec …'",),
                path=("env", key),
                fatal=False,
            )
        if place := _PLACE.search(value):
            yield Fault(
                code="env-literal",
                message=f"{key} will be {json.dumps(value, ensure_ascii=False)}, letter by letter",
                notes=(
                    f"{place[0]} is replaced in argv, not in [env]; a job has HPC_CHECKPOINTS and HPC_RUN",
                ),
                path=("env", key),
                fatal=False,
            )


def _alternatives(value: object) -> Iterator[Fault]:
    """One of the keys that exclude each other, neither none nor two."""
    needed = type(value) in ONE_OF
    keys = ONE_OF[type(value)] if needed else AT_MOST_ONE[type(value)]
    used_keys = [key for key in keys if getattr(value, key)]
    if len(used_keys) > 1:
        message = f"{' and '.join(used_keys)} are both set; keep one"
        yield Fault(code="alternatives", message=message, path=(used_keys[1],), at_key=True)
    elif needed and not used_keys:
        yield Fault(code="missing-key", message=f"{one_of(keys)} is missing", at_key=True)


def _only_with(value: object, key: str, *companions: str) -> Iterator[Fault]:
    if getattr(value, key) and not any(getattr(value, companion) for companion in companions):
        message = f"{key} has no effect without {one_of(companions)}"
        yield Fault(code="alternatives", message=message, path=(key,), at_key=True)


def _no_option(value: object, keys: Iterable[str]) -> Iterator[Fault]:
    """A value that a command would read as one of its options."""
    for key in keys:
        text = getattr(value, key)
        if text.startswith("-"):
            quoted = json.dumps(text, ensure_ascii=False)
            complaint = f"is {quoted}, which looks like an option of a command"
            yield Fault(code="wrong-value", complaint=complaint, path=(key,))


def check_package(package: Package) -> Iterator[Fault]:
    yield from _alternatives(package)
    yield from _only_with(package, "rev", "git")
    yield from _no_option(package, ("path", "git", "rev", "name"))
    if package.requirement:
        try:
            Package.parse(package.requirement)
        except ValueError as error:
            faults = wrong_value(package.requirement, *error.args).faults
            yield from (fault.under("requirement") for fault in faults)


def check_asset(asset: Asset) -> Iterator[Fault]:
    yield from _alternatives(asset)
    yield from _only_with(asset, "rev", "git")
    yield from _only_with(asset, "revision", "hub")
    yield from _only_with(asset, "sha256", "url", "path")
    yield from _only_with(asset, "inputs", "command")
    yield from _only_with(asset, "options", "use")
    yield from _no_option(asset, ("git", "path", "rev", "revision"))
    if asset.hub and not (asset.hub.count("/") <= 1 and all(map(is_name, asset.hub.split("/")))):
        complaint = f"is {json.dumps(asset.hub, ensure_ascii=False)}; org/name is needed"
        yield Fault(code="wrong-value", complaint=complaint, path=("hub",))
    if asset.url and not asset.url.startswith(("https://", "http://")):
        complaint = f"is {json.dumps(asset.url, ensure_ascii=False)}; http:// or https:// is needed"
        yield Fault(code="wrong-value", complaint=complaint, path=("url",))


def check_code(code: Code) -> Iterator[Fault]:
    yield from _alternatives(code)
    yield from _only_with(code, "rev", "git")
    yield from _no_option(code, ("git", "rev", "path"))


def check_account(account: str) -> Iterator[Fault]:
    if account and not is_account(account):
        quoted = json.dumps(account, ensure_ascii=False)
        yield Fault(code="account", message=f"an account is one plain name, not {quoted}")


def check_mail(mail: str) -> Iterator[Fault]:
    """It stands in the scheduler's words, so it is one address and nothing else."""
    if mail and not re.fullmatch(r"[\w.+-]+@[\w.-]+", mail, re.ASCII):
        quoted = json.dumps(mail, ensure_ascii=False)
        yield Fault(
            code="mail", message=f"mail is one address, not {quoted}", hint='mail = "ada@example.org"'
        )


def check_notify(words: tuple[str, ...]) -> Iterator[Fault]:
    """It starts in the run's folder, and its words are in a script that others may read."""
    if not words:
        return
    if "/" in words[0] and not words[0].startswith("/"):
        yield Fault(
            code="notify",
            message=f"the job does not start where this file lies: {words[0]!r} is not found there",
            hint='notify = ["/home/me/bin/tell-me"]',
        )
    if any("://" in word for word in words):
        yield Fault(
            code="notify",
            message="an address in notify would stand in the job's script, and often it is a password",
            hint="write it into a file that the program reads",
        )


def check_resources(resources: Resources) -> Iterator[Fault]:
    yield from _alternatives(resources)


RUN_CHECKS: Mapping[Any, Check] = {
    Package: check_package,
    Asset: check_asset,
    Code: check_code,
    Resources: check_resources,
    (Resources, "account"): check_account,
    (Resources, "mail"): check_mail,
    (Resources, "notify"): check_notify,
    (RunSpec, "name"): check_name,
    (RunSpec, "cluster"): check_name,
    (Environment, "use"): check_optional_name,
    (TrainSpec, "use"): check_optional_name,
    (Asset, "use"): check_optional_name,
    (RunSpec, "assets"): check_keys,
    (RunSpec, "env"): check_env,
    (RunSpec, "secrets"): check_secrets,
}
