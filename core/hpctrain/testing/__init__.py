"""The conformance kits: what every plugin of a kind must hold, as one class to subclass.

    from hpctrain.testing import ClusterConformance, EnvironmentConformance

    class TestLumi(ClusterConformance):
        cluster = "lumi"

    class TestTarball(EnvironmentConformance):
        environment = "tarball"
        options = {"url": "https://example.org/env.tar.gz"}

`pytest -p hpctrain.testing.plugin --update-golden` writes the golden files of a class that names a
folder for them. Needs pytest (`pip install 'hpctrain[testing]'`).
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("conformance", "facts", "hostile", "technology", "answers"))
)

from hpctrain.testing.answers import Answer  # noqa: E402
from hpctrain.testing.audit import watched  # noqa: E402
from hpctrain.testing.conformance import (  # noqa: E402  (after what rewrites its asserts)
    ClusterConformance,
    EnvironmentConformance,
    SchedulerConformance,
    TrainerConformance,
)
from hpctrain.testing.purity import package_folders  # noqa: E402

__all__ = [
    "Answer",
    "ClusterConformance",
    "EnvironmentConformance",
    "SchedulerConformance",
    "TrainerConformance",
    "package_folders",
    "watched",
]
