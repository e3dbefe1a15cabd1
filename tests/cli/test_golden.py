"""What people see, kept as text: plan, diff, explain, status and the commonest mistakes."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.e2e.product import Product, small
from tests.e2e.rig_cluster import write_cluster

GOLDEN = Path(__file__).parents[1] / "golden/cli"
PAIR = (
    small(
        "cat {assets.first} {assets.later}",
        assets='\n[assets]\nfirst = { command = ["x"] }\nlater = { command = ["x"] }\n',
    )
    .replace('"local"', '"rig"')
    .replace("nodes = 1", "nodes = 2")
    .replace('"once"', '"per_node"')
) + '\n[env]\nWANDB_MODE = "offline"\n'
SHOWN: dict[str, tuple[str, ...]] = {
    "plan": ("plan",),
    "plan-here": ("plan", "local.toml"),
    "explain": ("plan", "--explain", "WANDB_MODE"),
    "explain-step": ("plan", "--explain", "later"),
    "diff": ("diff", "--on", "local", "--on", "rig"),
    "status": ("status", "pair/1-00000000"),
    "clusters": ("clusters", "rig"),
}
SCREENS: dict[str, dict[str, Any]] = {
    "": {"COLUMNS": "80"},
    "-narrow": {"COLUMNS": "44"},
    "-ascii": {"COLUMNS": "80", "LC_ALL": "C"},
    "-plain": {"COLUMNS": "80", "ACCESSIBLE": "1"},
}
MISTAKES: dict[str, tuple[str, str]] = {
    "unknown-key": ("nodes = 2", "noodes = 2"),
    "wrong-type": ('"5m"', "90"),
    "time-limit": ('"5m"', '"3d"'),
    "toml": ("[environment]", "[environment] use = {}"),
    "no-plugin": ('"rig"', '"frontir"'),
    "several": ("nodes = 2", 'noodes = 2\nnodes = "no"\nmemory_gb = 0.5'),
}
UNSTABLE = ((re.compile(r"\b[0-9a-f]{12}\b"), "k" * 12), (re.compile(r"\b[0-9a-f]{8}\b"), "d" * 8))
KEPT: list[dict[str, Any]] = [
    {"event": "created", "digest": "0" * 64, "cluster": "rig", "plugins": []},
    {"event": "step-started", "step": "first", "host": "elsewhere", "pid": 1},
    {"event": "step-ended", "step": "first", "code": 0, "seconds": 3.2},
    {"event": "intent", "step": "train", "tag": "a" * 32},
    {"event": "submitted", "step": "train", "tag": "a" * 32, "job": "3141592"},
]


@pytest.fixture
def user(here: Product, tmp_path: Path) -> Product:
    """Somebody far from the rig, with run files for it and a run that he did there."""
    found = Product(here.home, here.folder, {"PYTHONPATH": str(write_cluster(tmp_path / "site"))})
    found.write(PAIR)
    found.write(small("true", env='\n[env]\nWANDB_MODE = "offline"\n'), "local.toml")
    return found


def compare(name: str, shown: str, user: Product, update: bool) -> None:
    """Hold `shown` against the file of this name, or write it."""
    for pattern, instead in UNSTABLE:
        shown = pattern.sub(instead, shown)
    shown = shown.replace(str(user.home), "HOME")
    path = GOLDEN / f"{name}.txt"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    changed = "\n".join(difflib.unified_diff(kept.splitlines(), shown.splitlines(), "kept", "shown"))
    assert kept == shown, f"{changed}\n(meant? pytest --update-golden)"


def keep_run(user: Product) -> None:
    """A run directory as `submit` leaves it, its job at an end that its own record tells."""
    out = user.folder / "pair/1-00000000"
    user("eject", "-o", str(out))
    (out / "record.jsonl").write_text(
        "".join(json.dumps({"v": 1, "time": "2026-11-20T12:00:00.000Z", **entry}) + "\n" for entry in KEPT)
    )
    (out / "steps/train/exit").write_text(
        '{"v":1,"job":"3141592","attempt":0,"code":0,"signal":"","at":"2026-11-20T12:28:00Z"}\n'
    )
    (out / "metrics.jsonl").write_text('{"step": 155, "loss": 1.214, "tokens_per_s": 1912.4, "mfu": 0.301}\n')


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_looks_as_it_did(user: Product, name: str, update_golden: bool) -> None:
    if name == "status":
        keep_run(user)
    for screen, environ in SCREENS.items():
        if screen and name not in ("plan", "status"):
            continue
        seen = attrs.evolve(user, environ={**user.environ, **environ})
        done = seen(*SHOWN[name], code=None)
        compare(f"{name}{screen}", done.stdout + done.stderr, user, update_golden)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_reads_as_it_did(user: Product, name: str, update_golden: bool) -> None:
    old, new = MISTAKES[name]
    assert old in PAIR
    user.write(PAIR.replace(old, new, 1))
    done = user("plan", code=2, COLUMNS="80")
    compare(f"error-{name}", done.stderr, user, update_golden)


def test_other_mistakes_read_as_they_did(user: Product, update_golden: bool) -> None:
    for name, code, args in (
        ("not-here", 6, ("submit",)),
        ("set", 2, ("plan", "--set", "resources.time=90")),
        ("unknown-name", 2, ("plan", "--explain", "WANDB_MOD")),
        ("no-run", 2, ("status", "nope")),
        ("not-pinned", 2, ("submit", "local.toml", "--locked")),
        ("usage", 2, ("plna",)),
    ):
        compare(f"error-{name}", user(*args, code=code, COLUMNS="80").stderr, user, update_golden)
