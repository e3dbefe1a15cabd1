"""Alps as its users work: an image entered by its description, with the site's own network hook."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.twin.alps import Builder, prepared
from tests.twin.fixtures import Start
from tests.twin.services.inside import python_image
from tests.twin.site_file import ROOT
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]


@pytest.fixture(scope="module")
def user(twin: Start) -> User:
    """Alice on Alps, with an image of her own."""
    alps = twin("alps")
    user = User(alps, folder="edf")
    alps.sh(f"{EXAMPLE}/image.sh {user.folder}/image.sqsh")
    user.put("run.toml", (EXAMPLE / "edf.toml").read_text().replace("IMAGE", f"{user.folder}/image.sqsh"))
    return user


@pytest.fixture(scope="module")
def builder(user: User) -> Builder:
    """Alice again, where the registry has the base of the document and the index its packages."""
    return Builder(prepared(user.twin), "built")


def said(user: User, path: str, rank: int) -> tuple[str, bool, dict[str, str]]:
    """What a rank printed about itself."""
    text = user.twin.sh(f"cat {path}/logs/train.rank{rank}.log")
    prefix, sees, environ = json.loads(next(line for line in text.splitlines() if line.startswith("[")))
    return prefix, sees, environ


def test_the_task_sees_what_the_plan_says(user: User) -> None:
    user.submit()
    path = user.until("done")["path"]
    plan: dict[str, Any] = json.loads(user.twin.sh(f"cat {path}/plan.json"))
    train = next(row for row in plan["steps"] if row["step"]["name"] == "train")
    ranks = int(user.twin.sh(f"ls {path}/logs/train.rank*.log | wc -l"))
    assert ranks >= 2
    for rank in range(ranks):
        prefix, sees, environ = said(user, path, rank)
        assert (prefix, sees) == ("/usr", True)
        for row in train["around"]["env"]:
            if row["at"] == "task" and row["how"] == "set" and isinstance(row["value"], str):
                assert environ[row["name"]] == row["value"], row
    assert environ["AWKWARD"] == "a b, 'c' \"d\" $HOME `id` \\ é"


def test_inside_the_engine_the_network_is_the_sites(user: User) -> None:
    path = user.until("done")["path"]
    _, _, environ = said(user, path, 0)
    sets = user.twin.site.cluster.facts["container_engine"]["sets"]
    assert {name: environ.get(name) for name in sets} == dict(sets)
    task = user.twin.sh(f"cat {path}/steps/train/task.sh")
    assert not [name for name in sets if f"export {name}=" in task]


def test_a_base_that_nobody_knows_is_listed_and_then_locked(builder: Builder) -> None:
    first = builder.train()
    assert [row["step"] for row in first["steps"]] == ["inspect", "image", "verify", "train"]
    assert "twin-pure 1.0" in builder.printed(first)
    assert builder.problems()["image-unknown"].startswith("hpctrain lock ")
    done = builder.hpctrain("lock", "run.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ packages\b", done.stdout), done.stdout
    assert not {"not-pinned", "image-unknown"} & set(builder.problems())
    (fact,) = builder.twin.sh(f"grep '^\"has:sha256:' {builder.folder}/run.lock.toml").splitlines()
    assert "| flash-attn==2.4.2 |" in fact
    assert "# constraint-file 3 lines /etc/pip/constraint.txt" in fact
    assert "# constraint regex==2024.11.6" in fact
    found = builder.train()
    assert [row["step"] for row in found["steps"]] == ["image", "verify", "train"]
    made = builder.twin.sh(f"cat {found['path']}/steps/image/packages.txt")
    assert made.startswith("twin-pure==1.0 --hash=sha256:")
    assert len(made.splitlines()) == 1


def test_an_image_is_built_once_and_another_beside_it(builder: Builder) -> None:
    first = builder.train(name="once")
    (one,) = builder.lies("once-*.sqsh")
    again = builder.train(name="once")
    assert again["path"] != first["path"]
    assert "image" in builder.there(again)
    assert builder.lies("once-*.sqsh") == [one]
    other = builder.train("1.1", name="once")
    assert "twin-pure 1.1" in builder.printed(other)
    assert "image" not in builder.there(other)
    assert len(builder.lies("once-*.sqsh")) == 2
    home = builder.twin.site.home("alice")
    assert builder.twin.run("test", "-e", f"{home}/.config/containers").returncode == 1


def test_packages_can_be_a_small_file_beside_the_base(builder: Builder) -> None:
    found = builder.train(name="apart", kind="venv")
    assert [row["step"] for row in found["steps"]][-4:] == ["image", "env", "verify", "train"]
    assert "twin-pure 1.0 /user-software" in builder.printed(found)
    base, venv = (builder.lies(f"apart-{front}*.sqsh")[0] for front in ("[0-9a-f]", "venv-"))
    listed = builder.twin.sh(f"unsquashfs -l {builder.images}/{venv}")
    assert "/twin_pure" in listed
    assert "/usr/" not in listed.replace("squashfs-root/lib", "")
    other = builder.train("1.1", name="apart", kind="venv")
    assert "twin-pure 1.1 /user-software" in builder.printed(other)
    assert "image" in builder.there(other)
    assert base in builder.lies("apart-*.sqsh")


EXTENDED = "ghcr.io/eth-cscs/alps-extended-images/ngc-pytorch:26.02-py3-alps6"


def test_the_site_s_own_images_train_on_two_nodes_in_their_own_way(builder: Builder) -> None:
    python_image(builder.twin, EXTENDED)
    one = Builder(builder.twin, "extended")
    text = (ROOT / "hpc_alps/hpc_alps/examples/extended.toml").read_text()
    ask = "import json, os; print(json.dumps([os.environ['PMIX_MCA_psec'], os.environ.get('NCCL_NET', '')]))"
    text = text.replace("[code]\npath", "[x]\npath").partition("[x]")[0]
    words = f'argv = ["python3", "-c", {json.dumps(ask)}]'
    one.put("run.toml", f'{text}\n[train]\nuse = "command"\n[train.command]\n{words}\nranks = "once"\n')
    one.submit()
    found = one.until("done", seconds=240)
    assert '["native", ""]' in one.printed(found)  # the site's NCCL hook brings nothing in
    job = one.twin.sh(f"cat {found['path']}/steps/train/job.sh")
    assert "--network=disable_rdzv_get --mpi=pmix" in job
