"""Downloads from a server that misbehaves."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpctrain_job import fetch
from hpctrain_job.downloads.partial import claim
from hpctrain_job.downloads.proof import Proof, git_name
from hpctrain_job.downloads.web import Failed, Patience, Refused, WrongContent
from tests.job.conftest import QUICK
from tests.job.server import Answer, Server, page, short, status
from tests.patience import PATIENCE, wait_for

BODY = random.Random(7).randbytes(300_000)
SHA = hashlib.sha256(BODY).hexdigest()


def bring(server: Server, target: Path, proof: Proof | None = None, patience: Patience = QUICK) -> None:
    server.files["/f"] = BODY
    fetch.download(f"{server.url}/f", target, proof=proof, patience=patience)


def test_brings_a_file_and_leaves_nothing_else(server: Server, tmp_path: Path) -> None:
    bring(server, tmp_path / "f", Proof(sha256=SHA))
    assert (tmp_path / "f").read_bytes() == BODY
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_waits_as_long_as_it_is_asked_to(server: Server, tmp_path: Path) -> None:
    server.script = [status(429, Retry_After="1"), status(503)]
    before = time.monotonic()
    bring(server, tmp_path / "f")
    assert 1.0 <= time.monotonic() - before < 4 * PATIENCE
    assert len(server.seen) == 3


def test_does_not_wait_for_hours(server: Server, tmp_path: Path) -> None:
    server.script = [status(429, Retry_After="7200")]
    with pytest.raises(Failed, match="asks to wait 7200 s"):
        bring(server, tmp_path / "f")


def test_gives_up_after_its_tries(server: Server, tmp_path: Path) -> None:
    server.script = [status(502)] * 10
    with pytest.raises(Failed, match=r"502 Bad Gateway \(4 tries\)"):
        bring(server, tmp_path / "f")
    assert len(server.seen) == 4


@pytest.mark.parametrize("code", [401, 403, 404])
def test_does_not_ask_again_when_it_is_refused(server: Server, tmp_path: Path, code: int) -> None:
    server.script = [status(code)] * 3
    with pytest.raises(Refused, match=str(code)):
        bring(server, tmp_path / "f")
    assert len(server.seen) == 1


def test_continues_a_body_that_ends_early(server: Server, tmp_path: Path) -> None:
    server.script = [short(100_000)]
    bring(server, tmp_path / "f", Proof(sha256=SHA))
    assert (tmp_path / "f").read_bytes() == BODY
    assert server.ranges == ["", "bytes=100000-"]


def test_starts_again_when_the_file_changed_meanwhile(server: Server, tmp_path: Path) -> None:
    def change(handler: object) -> None:
        short(100_000)(handler)  # type: ignore[arg-type]
        server.etag = '"two"'

    server.script = [change]
    bring(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY


def test_half_a_file_of_unknown_origin_is_not_continued(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(b"something else")
    bring(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
    assert server.ranges == [""]


def test_a_part_longer_than_the_file_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(BODY + b"more")
    bring(server, tmp_path / "f", Proof(size=len(BODY), sha256=SHA))
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_proxys_page_is_noticed_and_asked_past(server: Server, tmp_path: Path) -> None:
    server.script = [page]
    bring(server, tmp_path / "f", Proof(sha256=SHA))
    assert (tmp_path / "f").read_bytes() == BODY


def test_wrong_content_is_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(WrongContent, match="was pinned"):
        bring(server, tmp_path / "f", Proof(sha256="0" * 64))
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".etag"] == []
    assert len(server.seen) == 2


def test_what_is_here_and_proven_is_not_fetched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(BODY)
    bring(server, tmp_path / "f", Proof(sha256=SHA))
    assert server.seen == []


def test_a_token_does_not_follow_a_redirect(server: Server, tmp_path: Path) -> None:
    other = Server()
    try:
        other.files["/g"] = BODY
        server.script = [status(302, Location=f"{other.url.replace('127.0.0.1', 'localhost')}/g")]
        fetch.download(
            f"{server.url}/f", tmp_path / "f", headers={"Authorization": "Bearer x"}, patience=QUICK
        )
    finally:
        other.shutdown()
        other.server_close()
    assert "Authorization" in server.seen[0][1]
    assert "Authorization" not in other.seen[0][1]


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="only http"):
        fetch.download("file:///etc/passwd", tmp_path / "f", patience=QUICK)


def test_nobody_there_is_a_failure_of_its_own(tmp_path: Path) -> None:
    quick = Patience(tries=2, first=0.01)
    with pytest.raises(Failed, match=r"cannot reach 127\.0\.0\.1:9"):
        fetch.download("http://127.0.0.1:9/f", tmp_path / "f", patience=quick)


def test_gits_name_is_gits(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"hello\n")
    done = subprocess.run(["git", "hash-object", tmp_path / "f"], capture_output=True, text=True, check=True)
    assert git_name(tmp_path / "f") == done.stdout.strip()


def command(server: Server, tmp_path: Path, *more: str) -> list[str]:
    into, partial = tmp_path / "made" / "work", tmp_path / "partial" / "url-1"
    (tmp_path / "made").mkdir(exist_ok=True)
    return [
        *(sys.executable, "-m", "hpctrain_job.fetch", f"{server.url}/f"),
        *("--into", str(into), "--partial", str(partial), *more),
    ]


@pytest.mark.parametrize(
    ("answers", "more", "code"),
    [
        ([], (), 0),
        ([status(404)], (), 77),
        ([status(500)] * 9, ("--tries", "1"), 69),
        ([], ("--sha256", "0" * 64), 65),
    ],
)
def test_exit_codes(
    server: Server, tmp_path: Path, answers: list[Answer], more: tuple[str, ...], code: int
) -> None:
    server.files["/f"], server.script = BODY, answers
    done = subprocess.run(
        command(server, tmp_path, *more), capture_output=True, text=True, timeout=30 * PATIENCE
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert (tmp_path / "made" / "work").exists() == (code == 0)


def test_a_killed_download_continues_in_another_folder(server: Server, tmp_path: Path) -> None:
    def hang(handler: object) -> None:
        handler.say(200, BODY[:200_000], Content_Length=str(len(BODY)), ETag=server.etag)  # type: ignore[attr-defined]
        time.sleep(20)

    server.files["/f"], server.script = BODY, [hang]
    child = subprocess.Popen(command(server, tmp_path))
    part = tmp_path / "partial" / "url-1" / "content.part"
    wait_for("a part of it", lambda: part.exists() and part.stat().st_size, 10)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10 * PATIENCE)
    kept = part.stat().st_size
    done = subprocess.run(
        command(server, tmp_path, "--sha256", SHA), capture_output=True, text=True, timeout=30 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert kept
    assert server.ranges == ["", f"bytes={kept}-"]
    assert (tmp_path / "made" / "work").read_bytes() == BODY


def test_two_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    shared, into = tmp_path / "partial" / "x", tmp_path / "work"
    with claim(shared, into) as one, claim(shared, into) as two:
        assert one == shared
        assert two != one
    assert not shared.exists()
