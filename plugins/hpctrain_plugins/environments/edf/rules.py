"""Known failures of the Container Engine and of the builds for it: what a log says, why, what mends it."""

from __future__ import annotations

from hpctrain.plugin import Rule
from hpctrain_plugins.environments.image import rules

RULES = (
    *rules.RULES,
    rules.another_version("edf"),
    Rule(
        name="podman-space",
        pattern=r"(?s)podman.*no space left on device|no space left on device.*/dev/shm",
        cause="podman's store lies in the node's memory, and the image's layers did not fit",
        fix="a smaller base, or fewer packages; the store is empty again when the job ends",
        sure="likely",
    ),
)
