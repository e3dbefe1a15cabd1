"""Room under Lustre's quotas, with a stand-in for `lfs` that says what the manual shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job.downloads import room

LFS = r"""#!/bin/bash
# a stand-in for Lustre's own program
case "$*" in
  "project -d "*) echo " $PROJECT P ${!#}" ;;
  "quota -q -u "*) echo "$USERS" ;;
  "quota -q -g "*) echo "$GROUPS_" ;;
  "quota -q -p 4711 "*) printf '%s\n' "$PROJECTS" ;;
  *) exit 22 ;;
esac
"""
NONE = "/lustre/orion  52428800       0       0       -  123456       0       0       -"
LONG = "/lustre/orion/abc123/proj-shared\n               9000* 8000 10000 6d23h59m 1234 0 0 -"


@pytest.fixture
def lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/lfs"
    program.write_text(LFS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name, value in {"PROJECT": "0", "USERS": NONE, "GROUPS_": NONE, "PROJECTS": ""}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_no_limit_and_no_lustre_say_nothing(lfs: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(room.quotas(tmp_path)) == []
    lfs.setenv("PATH", "/usr/bin:/bin")
    assert list(room.quotas(tmp_path)) == []


def test_what_a_project_has_used_counts_before_the_first_byte(
    lfs: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lfs.setenv("PROJECT", "4711")
    lfs.setenv("PROJECTS", LONG)  # 1000 KiB are left, although a soft limit is passed
    room.free_or_fail(tmp_path, 1_000_000, quota_gb=50)
    with pytest.raises(room.NoSpace, match=r"^the quota of project 4711 at \S+ has 0\.0 GB left"):
        room.free_or_fail(tmp_path, 1_100_000, quota_gb=50)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("/scratch 100 200 300 - 1 0 0 -", 200 * 1024),
        ("/scratch 100 200 0 - 1 0 0 -", 100 * 1024),
        ("/scratch 400* 200 300 none 1 0 0 -", 0),
        (NONE, None),
        ("Unexpected quotactl error: Operation not supported", None),
        ("", None),
    ],
)
def test_the_numbers_of_lfs(said: str, left: int | None) -> None:
    assert room._left(said) == left


def test_a_program_that_hangs_or_fails_is_no_reason_to_stop(lfs: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lfs.setattr(room, "SECONDS", 0.5)
    (tmp_path / "bin/lfs").write_text("#!/bin/bash\nexec sleep 30\n")
    assert list(room.quotas(tmp_path)) == []
