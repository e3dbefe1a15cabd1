"""Assets come from the twin's hub under its real name, also when it misbehaves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_for
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

WEIGHTS = 300_000
SAFETENSORS = f"""
import json, os, struct
head = json.dumps({{"w": {{"dtype": "U8", "shape": [{WEIGHTS}], "data_offsets": [0, {WEIGHTS}]}}}}).encode()
open("org/model/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + os.urandom({WEIGHTS}))
"""
CLIENT = """
import sys
from huggingface_hub import snapshot_download
print(snapshot_download("org/model", local_dir=sys.argv[1], token=False))
"""


@pytest.fixture
def hub(twin: Start) -> Iterator[Twin]:
    """A twin whose hub has a model, and a gated one."""
    one = twin("frontier")
    make = (
        "cd /srv/hub/models && mkdir -p org/model/sub org/gated && echo '{}' >org/model/config.json && "
        f"python3 -c {shlex.quote(SAFETENSORS)} && echo x >org/model/sub/note.txt && "
        "cp org/model/config.json org/gated/ && touch org/gated/.gated"
    )
    wait_for("the hub", lambda: one.run("curl", "-sS", "https://huggingface.co/").returncode == 0)
    assert one.run("bash", "-c", make).returncode == 0
    one.run("truncate", "-s0", "/run/twin/hub.log", "/run/twin/hub.script")
    yield one
    one.run("truncate", "-s0", "/run/twin/hub.script")


@pytest.fixture
def user(hub: Twin, request: pytest.FixtureRequest) -> User:
    """A user whose run wants the model."""
    name = request.node.name
    found = User(hub, folder=f"hub-{name}")
    text = (EXAMPLE / "wait.toml").read_text().replace('"60"', '"1"')
    title = name.removeprefix("test_").replace("_", "-")
    found.put("run.toml", text.replace('"wait"', f'"{title}"') + ASSET.format(repository="org/model"))
    return found


ASSET = '\n[assets]\nmodel = {{ hub = "{repository}" }}\n'


def requests(hub: Twin) -> list[str]:
    """What the hub was asked and how it was spoiled."""
    return hub.run("cat", "/run/twin/hub.log").stdout.splitlines()


def runs(user: User) -> str:
    """Where the user's runs are."""
    return user.twin.site.fill(user.twin.site.cluster.storage["runs"].path, user.name)


def brought(user: User) -> dict[str, str]:
    """The files of the snapshot with their hashes."""
    assets = user.twin.site.fill(user.twin.site.cluster.storage["assets"].path, user.name)
    found = user.twin.sh(f"find -L {assets} -path '*/hub-*' -name config.json | head -1").strip()
    lines = user.twin.sh(f"cd {Path(found).parent} && find . -type f -exec sha256sum {{}} +").splitlines()
    return {line.split()[1].removeprefix("./"): line.split()[0] for line in lines}


def test_a_snapshot_in_spite_of_everything(user: User) -> None:
    fault(user.twin, "hub-429", "1")
    fault(user.twin, "hub-503")
    done = user.hpctrain("lock", "run.toml", "--account", "abc123")
    assert done.returncode == 0, done.stderr
    fault(user.twin, "hub-429", "1")
    fault(user.twin, "hub-503")
    fault(user.twin, "hub-short", "1000")
    user.submit()
    user.until("done", seconds=60)
    source = user.twin.run("sha256sum", "/srv/hub/models/org/model/model.safetensors").stdout.split()[0]
    found = brought(user)
    assert set(found) == {"config.json", "model.safetensors", "sub/note.txt"}
    assert found["model.safetensors"] == source
    spoiled = [line.split(maxsplit=3)[3] for line in requests(user.twin) if not line.endswith(" -")]
    assert spoiled == ["429 1", "503", "429 1", "503", "short 1000"]


def test_a_gated_model_says_what_to_do(user: User) -> None:
    text = user.twin.sh(f"cat {user.folder}/run.toml").replace("org/model", "org/gated")
    user.put("run.toml", text)
    done = user.hpctrain("submit", "run.toml", "--account", "abc123")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "401" in done.stderr
    assert "licence" in done.stderr or "token" in done.stderr
    user.put("run.toml", 'secrets = ["huggingface"]\n' + text)
    wrong = user.hpctrain("submit", "run.toml", "--account", "abc123", env={"HF_TOKEN": "hf_other"})
    assert wrong.returncode != 0
    assert "403" in wrong.stderr
    assert "hf_other" not in wrong.stdout + wrong.stderr
    right = user.hpctrain("submit", "run.toml", "--account", "abc123", env={"HF_TOKEN": "hf_twin"})
    assert right.returncode == 0, right.stderr
    assert user.twin.sh(f"grep -rls hf_twin {runs(user)} {user.folder} || true") == ""


def test_the_real_client_reads_the_hub(hub: Twin, torch: None) -> None:
    fault(hub, "hub-503")
    done = hub.run(
        "/opt/twin/torch/bin/python", "-c", CLIENT, f"{hub.site.home('alice')}/client", user="alice",
        env={"HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    size = hub.sh(f"stat -c%s {Path(done.stdout.strip())}/model.safetensors")
    assert int(size) > WEIGHTS


UPLOAD = """
import json, os, pathlib, sys
from huggingface_hub import HfApi
api, folder = HfApi(), pathlib.Path(sys.argv[1])
folder.mkdir()
(folder / "model.safetensors").write_bytes(os.urandom(50_000))
api.create_repo("org/mine")
api.create_branch("org/mine", branch="global_step8")
api.upload_folder(repo_id="org/mine", folder_path=folder, revision="global_step8")
print(json.dumps([b.name for b in api.list_repo_refs("org/mine").branches]))
print(json.dumps(api.list_repo_files("org/mine", revision="global_step8")))
"""


def test_the_real_client_writes_to_the_hub(hub: Twin, torch: None) -> None:
    fault(hub, "hub-429", "1")
    hub.run("bash", "-c", "sed -i 's/^429/~^PUT &/' /run/twin/hub.script")
    done = hub.run(
        "/opt/twin/torch/bin/python", "-c", UPLOAD, f"{hub.site.home('alice')}/upload", user="alice",
        env={
            "HF_TOKEN": "hf_twin",
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    branches, files = (json.loads(line) for line in done.stdout.splitlines())
    assert branches == ["global_step8", "main"]
    assert files == ["model.safetensors"]
    assert len([line for line in requests(hub) if line.startswith("PUT /lfs/")]) == 2


def test_no_node_without_a_way_out_reaches_it(hub: Twin, twin: Start) -> None:
    line = ("curl", "-sS", "-m5", "https://huggingface.co/api/models/org/none")
    open_ = twin("alps")
    wait_for("the hub", lambda: open_.run(*line).returncode == 0)
    assert open_.run(*line, node=open_.site.hosts[0].name).returncode == 0
    assert hub.run(*line).stdout == '{"error": "Repository Not Found"}'
    assert hub.run(*line, node=hub.site.hosts[0].name).returncode in (6, 7)
