"""Runs in a container that sees its binds alone: submitted, ejected anywhere, with and without tokens."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs
import pytest

from tests.conftest import needs
from tests.e2e.conftest import here as here
from tests.e2e.ejected import carried_out, poisoned
from tests.e2e.product import SYSTEM, Product

BOX = Path(__file__).with_name("box.sh")
TOKEN = "t0ken-t0ken"
RUN = """
name = "boxed"
cluster = "local"
{secrets}
[resources]
nodes = 1
time = "5m"
[environment]
use = "ready"
[environment.ready]
image = "/nonexistent/image.sif"
[train]
use = "command"
[train.command]
ranks = "once"
argv = ["bash", "-c", 'echo "in $PWD"; echo "token ${{#MY_HUB}}"; ls -d ~/other 2>/dev/null || echo "boxed"']
"""
SECRETS = 'secrets = ["my-hub"]'


@pytest.fixture
def boxed(here: Product, tmp_path: Path) -> Product:
    """A user whose `apptainer` shows a container its binds alone; `~/other` is none of them."""
    namespace = ("unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "box", "/mnt")
    can_mount = subprocess.run(namespace, capture_output=True, check=False).returncode == 0
    needs("namespaces", can_mount, "this computer lets nobody mount in a namespace of their own")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "apptainer").symlink_to(BOX)
    (here.home / "other").mkdir()
    path = f"{programs}:{here.environment['PATH']}"
    return attrs.evolve(here, environ={"PATH": path})


def shell(user: Product, folder: Path) -> dict[str, str]:
    """The environment of somebody who starts run.sh: no hpctrain, the container, the token."""
    environ = poisoned(folder)
    path = f"{folder}/programs:{environ['PATH']}:{SYSTEM}"
    return environ | {"PATH": path, "HOME": str(user.home), "MY_HUB": TOKEN}


@pytest.mark.parametrize("secrets", ["", SECRETS], ids=["plain", "token"])
def test_a_submitted_run_sees_its_folder_and_its_tokens(secrets: str, boxed: Product) -> None:
    boxed.write(RUN.format(secrets=secrets))
    (boxed.home / ".config/hpctrain").mkdir(parents=True)
    (boxed.home / ".config/hpctrain/settings.toml").write_text('[secrets]\nmy-hub = { env = "MY_HUB" }\n')
    title = boxed("submit", "run.toml", "--wait", MY_HUB=TOKEN).stdout.strip()
    path = boxed.run_path(title)
    log = (path / "logs/train.log").read_text()
    assert log.splitlines() == [f"in {path}", f"token {len(TOKEN) if secrets else 0}", "boxed"], log


@pytest.mark.parametrize("secrets", ["", SECRETS], ids=["plain", "token"])
def test_an_ejected_run_works_from_any_folder(secrets: str, boxed: Product, tmp_path: Path) -> None:
    boxed.write(RUN.format(secrets=secrets))
    target = boxed.home / "my scripts"  # below no storage role
    script = boxed("eject", "run.toml", "-o", str(target)).stdout.strip()
    carried_out(script, shell(boxed, tmp_path))
    log = (target / "logs/train.log").read_text()
    assert log.splitlines() == [f"in {target}", f"token {len(TOKEN) if secrets else 0}", "boxed"], log


def test_an_ejected_run_works_where_it_was_moved_and_behind_a_link(boxed: Product, tmp_path: Path) -> None:
    boxed.write(RUN.format(secrets=SECRETS))
    boxed("eject", "run.toml", "-o", str(tmp_path / "first"))
    moved, link = tmp_path / "moved", tmp_path / "link"
    (tmp_path / "first").rename(moved)
    link.symlink_to(moved)
    carried_out(str(link / "run.sh"), shell(boxed, tmp_path))
    log = (moved / "logs/train.log").read_text()
    assert log.splitlines() == [f"in {moved}", f"token {len(TOKEN)}", "boxed"], log
