"""What a base image has, as far as it was asked: its step `inspect` lists it, and a lock keeps the list.

Nothing is guessed: an image has hundreds of packages, NVIDIA's 25.03 to 25.09 refuse other versions of them,
and a list of some would be taken for the whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.plugin import Artifact, Binding, Cluster, ConfigError, Package, Pin, RunSpec
from hpctrain.toolbox import git_pin_name, pinned_value
from hpctrain_job.listing import Listing, one_line, read
from hpctrain_plugins.environments.image import Image
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, normal

KIND = "has"
"""The kind of the pin that says what an image has: its digest, and the list as one line."""


def list_of(run: RunSpec, file: str, stands_on: Image, where: str, pins: tuple[Pin, ...]) -> Listing | None:
    """What the image has: the run file's list of it, else the lock's."""
    text = run.texts.get(file, "") if file else pinned_value(pins, KIND, stands_on.key)
    if not (file or text):
        return None
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError.of(
            "image-list",
            f"{file or 'the lock'}: {error}",
            where=where,
            hint="the file that the step inspect made, as it is" if file else "hpctrain lock",
        ) from None


def pin(
    stands_on: Image, listed: Artifact, cluster: Cluster, binding: Binding, pins: Iterable[Pin]
) -> list[Pin]:
    """The list as an earlier lock has it, else as the step left it on this machine."""
    if not stands_on.digest:
        return []  # nothing says that it is still the image that was asked
    value = pinned_value(pins, KIND, stands_on.digest) or _left(listed, cluster, binding)
    return [Pin(stands_on.digest, KIND, value)] if value else []


def _left(listed: Artifact, cluster: Cluster, binding: Binding) -> str:
    from pathlib import Path

    from hpctrain.toolbox import accepted_owners, damaged_file  # a lock needs them, a plan does not
    from hpctrain_job.files import trust

    root = binding.roots.get(listed.role)
    if not isinstance(root, str):
        return ""
    path = Path(root, listed.filename)
    accepted = trust.Accepted(accepted_owners(cluster, listed.role, binding))
    judged = trust.artifact(str(path), accepted)
    if judged.verdict is not trust.Verdict.EXISTS or (judged.is_foreign and damaged_file(path)):
        return ""
    return one_line(read(path.read_text(encoding="utf-8")))


def deciding(pins: Iterable[Pin], user_packages: Iterable[Package]) -> tuple[Pin, ...]:
    """The pins that decide what is put on an image: versions, commits of your own code, what is rebuilt."""
    git = {git_pin_name(p.git, p.rev) for p in user_packages if p.git}
    return tuple(p for p in pins if p.kind in ("pypi", "rebuild") or (p.kind == "git" and p.name in git))


def replaced(spec: PackagesSpec, named: Iterable[str]) -> tuple[str, ...]:
    """What takes the place of the image's own: what `replace` names, your own code, and what is compiled,
    which is named with its version."""
    user_packages = (p.name for p in spec.user_packages if p.name)
    compiled = (source.name for source in spec.compile)
    return tuple(sorted(set(map(normal, (*named, *user_packages, *compiled)))))


def imported(spec: PackagesSpec, named: Iterable[str], pins: Iterable[Pin]) -> tuple[str, ...]:
    """What must import, and of what replaces the image's own the very version, as far as it is known."""
    pinned = {pin.name: pin.value.split()[0] for pin in pins if pin.kind == "pypi"}
    compiled = {source.name: source.version for source in spec.compile}
    versions = {name: compiled.get(name) or pinned.get(name, "") for name in replaced(spec, named)}
    every = dict.fromkeys((*spec.named, *(name for name, version in versions.items() if version)))
    return tuple(f"{name}=={versions[name]}" if versions.get(name) else name for name in every)
