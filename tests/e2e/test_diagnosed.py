"""A run that ends badly tells why: `submit --wait` by itself, `status` and `diagnose` when asked."""

from __future__ import annotations

from tests.cli.terminal import on_terminal
from tests.e2e.product import Product, small


def test_a_bad_end_is_diagnosed_at_once(here: Product) -> None:
    here.write(small("echo step 1; echo 'OSError: [Errno 28] No space left on device' >&2; exit 1"))
    errors = here("submit", "--wait", code=8).stderr
    assert "= note: cause: certain: the disk that the line names is full" in errors
    assert "= note: evidence: OSError: [Errno 28] No space left on device" in errors
    assert "= note: fix: free some space" in errors
    assert "help: hpctrain diagnose small/1\n" in errors
    assert "next:  hpctrain diagnose small/1" in on_terminal(here, "status")
    assert "rule      disk-full, from core" in here("diagnose").stdout


def test_a_signal_is_named_by_its_number(here: Product) -> None:
    here.write(small("echo step 1; kill -9 $$"))
    here("submit", "--wait", code=8)
    (step,) = here.json("diagnose")["steps"]
    assert [cause["rule"] for cause in step["causes"]] == ["killed"]
    assert step["causes"][0]["sure"] == "guess"


def test_a_missing_module_is_named_for_any_program(here: Product) -> None:
    here.write(small("python3 -c 'import flash_attn_of_nobody'"))
    errors = here("submit", "--wait", code=8).stderr
    assert "No module named 'flash_attn_of_nobody'" in errors
    assert "packages = [...]" in errors
