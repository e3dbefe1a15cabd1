"""The hash of a pin, whatever the version of pip that wrote the report."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hpctrain_plugins.environments.wheels.pins_native import sha256_of
from tests.environments.small_wheel import wheel


def test_a_wheel_of_a_folder_is_hashed_where_pip_did_not(tmp_path: Path) -> None:
    """Debian 12's pip 23.0.1 writes no hash for --find-links FOLDER, and then refuses to install without."""
    path = wheel(tmp_path / "two words", "alpha", "1.0")
    report = {"url": path.as_uri(), "archive_info": {}}
    assert sha256_of(report) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_report_s_own_hash_is_taken(tmp_path: Path) -> None:
    report = {"url": "file:///nowhere/a.whl", "archive_info": {"hashes": {"sha256": "ab12"}}}
    assert sha256_of(report) == "ab12"


def test_what_is_no_file_here_has_no_hash(tmp_path: Path) -> None:
    for url in ("https://index.example/a-1.0.whl", "file:///nowhere/a-1.0.whl", tmp_path.as_uri()):
        assert sha256_of({"url": url, "archive_info": {}}) == ""
