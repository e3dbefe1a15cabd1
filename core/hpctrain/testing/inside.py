"""Containers: what their scripts name, some bind covers, and the way in says so.

An environment that puts words in front of a command (`wrap`), or into the command that starts the ranks
(`starter`), is taken for a container; where it is none, `without` leaves the test out and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from hpctrain.model.layer import Layer
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.step import Launch
from hpctrain.model.words import Loc, Var, Word
from hpctrain.plan import tokens
from hpctrain.render import scripts, shell
from hpctrain.session import Session
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject, binding_of

ADDED = 'secrets=["huggingface"]'
"""Every example trains with a token here: most have none, and their users add one later."""
BETWEEN_PATHS = re.compile(r"[\s,:=\[\]]+")


class InsideChecks(Base):
    """What is seen inside a container."""

    def test_a_container_sees_what_its_scripts_name(self, subject: Subject, example: Path) -> None:
        none(uncovered(subject.session(example, ADDED)), "a container lacks what its task names:")


@frozen
class Folder:
    """A folder that a task names."""

    role: str
    """What it is to people."""
    paths: tuple[str, ...]
    """Where it lies; a bind of any of these, or of a folder above, shows it."""


def uncovered(session: Session) -> Iterator[str]:
    """A complaint for each folder that the task of a step names and that its container does not see."""
    plan, binding = session.plan(), binding_of(session)
    entry = environment_layer(session)
    if not (entry.wrap or entry.starter):
        return
    for planned in (step for step in plan.steps if step.step.inside):
        visible = {path.rstrip("/") for text in _way_in(planned, entry, binding) for path in _paths(text)}
        yield from (
            f"step {planned.name} names {folder.role}, and no bind covers {folder.paths[0]}: "
            "enter_env makes an option of every Bind in `binds`"
            for folder in _named(planned, plan, binding)
            if visible.isdisjoint(above for path in folder.paths for above in _upwards(path))
        )


def environment_layer(session: Session) -> Layer:
    """What the environment alone brings: by its binds it cannot be told, so it gets none."""
    plan = session.plan()
    if not plan.run.environment.use:
        return Layer()
    train = plan.step_named("train")
    launch = train.step.launch if train else Launch()
    words = {"run": plan.run, "cluster": plan.cluster, "pins": plan.pins, "launch": launch, "binds": ()}
    layer = session.hooks.call("enter_env", **words)
    return layer if isinstance(layer, Layer) else Layer()


def _way_in(planned: PlannedStep, entry: Layer, binding: Binding) -> Iterator[str]:
    """All that is said on the way in: in front of the command, to the starter, in files and variables."""
    around = planned.around
    names, files = {var.name for var in entry.env}, {file.path for file in entry.files}
    yield from (_text(word, binding) for word in around.wrap)
    yield from (_text(word, binding) for words in around.starter.values() for word in words)
    yield from (_text(var.value, binding) for var in around.env if var.name in names)
    yield from (_text(word, binding) for file in around.files if file.path in files for word in file.body)


def _named(planned: PlannedStep, plan: Plan, binding: Binding) -> Iterator[Folder]:
    """The run's directory, then what the task names: its tokens, storage roles, the user's own places."""
    step, text = planned.step, _task(planned, binding)
    yield Folder("the run's directory", (_text(Var("HPC_RUN"), binding),))
    if "HPC_SECRETS" in text:
        state = _text(Loc(tokens.STATE, "secrets"), binding)
        yield Folder("the folder of its tokens", (_text(Var("HPC_SECRETS"), binding), state))
    roles = {step.makes.role} if step.makes else set()
    roles |= {"checkpoints"} if "HPC_CHECKPOINTS" in text else set()
    for role, root in binding.roots.items():
        path = _text(root, binding)
        if role in roles or _names(text, path):
            yield Folder(f"the storage role {role}", (path,))
    for name, asset in plan.run.assets.items():
        if asset.path.startswith("/") and _names(text, asset.path):
            yield Folder(f"the asset {name}", (asset.path,))


def _task(planned: PlannedStep, binding: Binding) -> str:
    """What is read inside: task.sh, and the files that a trainer or the step itself brings."""
    bodies = (word for file in planned.step.files for word in file.body)
    return "".join((_plain(scripts.task(planned, binding)), *(_text(word, binding) for word in bodies)))


def _text(word: Word, binding: Binding) -> str:
    """A word as a script shows it, but for quotes."""
    return _plain(word if isinstance(word, str) else shell.word(word, binding))


def _plain(text: str) -> str:
    """Script text without quotes, every variable as `${NAME}`: it is compared, and no shell reads it."""
    return re.sub(r"\$([A-Za-z_]\w*)", r"${\1}", text.replace('"', "").replace("'", ""))


def _paths(text: str) -> list[str]:
    return BETWEEN_PATHS.split(text)


def _names(text: str, path: str) -> bool:
    """Whether a path stands in the text; /a/runs-old is not below /a/runs."""
    return bool(re.search(rf"(?<![\w.}}/-]){re.escape(path.rstrip('/'))}(?![\w.-])", text))


def _upwards(path: str) -> list[str]:
    """A path and the folders above it."""
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1) if parts[count - 1]]
