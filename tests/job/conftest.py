"""The misbehaving server and a patience of milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpctrain_job.downloads.web import Patience
from tests.job.server import Server

QUICK = Patience(tries=4, first=0.01, longest=2.0, timeout=5.0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Server()
    yield found
    found.shutdown()
    found.server_close()
