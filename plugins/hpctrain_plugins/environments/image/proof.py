"""The proof of an environment in an image: Python starts where it will train, and imports what is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.plugin import After, Artifact, Cmd, Need, Step, Var


def step(named: tuple[str, ...], inputs: Mapping[str, object], arch: str, after: Iterable[Step] = ()) -> Step:
    """Kept, so that it happens once for what it was made of."""
    before = tuple(after)[-1:]
    return Step(
        name="verify",
        commands=(Cmd.of("python3", "-m", "hpctrain_job.imports", *named, stdout=Var("WORK")),),
        needs=frozenset({Need.TARGET}),
        inside=True,
        makes=Artifact(
            name="verified", role="env", inputs={"imports": list(named), **inputs}, arch=arch, suffix=".txt"
        ),
        after=tuple(After(step.name) for step in before),
    )
