"""The conformance kit: what every cluster plugin must hold, as one class to subclass.

    from hpctrain.testing import ClusterConformance

    class TestLumi(ClusterConformance):
        cluster = "lumi"

`pytest -p hpctrain.testing.plugin --update-golden` writes the golden files of a class that names a
folder for them. Needs pytest (`pip install 'hpctrain[testing]'`).
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in ("conformance", "facts", "hostile")))

from hpctrain.testing.audit import watched  # noqa: E402
from hpctrain.testing.conformance import ClusterConformance  # noqa: E402  (after what rewrites its asserts)

__all__ = ["ClusterConformance", "watched"]
